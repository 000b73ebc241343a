package dev.iostep.phone.upload;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** Somebody who is no server of results and answers in its place, one answer after the other. */
final class Portal implements AutoCloseable {
    private final ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    private final Thread thread;
    private volatile int asked;

    /** {@code meanwhile} happens before the answer to a request with a body. */
    Portal(String status, Runnable meanwhile, String... answers) throws IOException {
        thread = new Thread(() -> {
            for (String answer : answers) {
                try (Socket caller = socket.accept()) {
                    asked++;
                    answer(caller, status, meanwhile, answer);
                } catch (IOException gone) {
                    // The test says what is wrong.
                }
            }
        });
        thread.start();
    }

    String url() {
        return "http://127.0.0.1:" + socket.getLocalPort();
    }

    /** How many requests came. */
    int asked() {
        return asked;
    }

    /** Waits until every answer was given. */
    void join() throws InterruptedException {
        thread.join();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private static void answer(Socket caller, String status, Runnable meanwhile, String answer)
            throws IOException {
        DataInputStream in = new DataInputStream(caller.getInputStream());
        int length = 0;
        for (String line = in.readLine(); line != null && !line.isEmpty();
                line = in.readLine()) {
            if (line.toLowerCase(Locale.ROOT).startsWith("content-length: ")) {
                length = Integer.parseInt(line.substring("content-length: ".length()));
            }
        }
        in.readFully(new byte[length]);
        if (length > 0) {
            meanwhile.run();
        }
        caller.getOutputStream().write(("HTTP/1.1 " + status + "\r\nLocation: http://x\r\n"
                + "Content-Length: " + answer.length() + "\r\nConnection: close\r\n\r\n" + answer)
                .getBytes(StandardCharsets.UTF_8));
    }
}
