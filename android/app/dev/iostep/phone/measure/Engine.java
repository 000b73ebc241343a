package dev.iostep.phone.measure;

import android.content.Context;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * The program {@code iostep-bench}, which lies where Android unpacks libraries: from nowhere else may
 * an app start one.
 */
public final class Engine {
    private static final String PROGRAM = "libiostep.so";
    /** How often somebody looks at what it says. */
    private static final long LOOK_MS = 100;
    private final File program;
    private final File temporary;

    public Engine(Context context) {
        this(new File(context.getApplicationInfo().nativeLibraryDir, PROGRAM),
                context.getCacheDir());
    }

    Engine(File program, File temporary) {
        this.program = program;
        this.temporary = temporary;
    }

    /** What came of a command. */
    public static final class Outcome {
        /** What it printed. */
        public final String text;
        /** What it said of itself on standard error, without progress. */
        public final String complaint;
        /** False if it failed, or ended early. */
        public final boolean whole;

        public Outcome(String text, String complaint, boolean whole) {
            this.text = text;
            this.complaint = complaint;
            this.whole = whole;
        }
    }

    /** Runs a test in a directory. */
    public Outcome bench(List<String> arguments, File directory, Progress.Listener listener,
            Stop stop) throws IOException {
        List<String> words = new ArrayList<>();
        words.add("bench");
        words.addAll(arguments);
        words.add("--json");
        words.add("--progress");
        words.add("--");
        words.add(directory.getPath());
        return run(words, listener, stop);
    }

    /** A result with its figures worked out. */
    public Outcome show(File result) throws IOException {
        return run(Arrays.asList("bench", "show", "--json", result.getPath()), null, new Stop());
    }

    /** What of a result is sent to a server. */
    public Outcome toSend(File result) throws IOException {
        return run(Arrays.asList("bench", "show", "--to-send", result.getPath()), null, new Stop());
    }

    /** Two results side by side. */
    public Outcome compare(File first, File second) throws IOException {
        return run(Arrays.asList("compare", "--json", first.getPath(), second.getPath()), null,
                new Stop());
    }

    /** What it says goes to files: {@code Process.destroy} closes pipes, and what it says after its
     * signal, which is what was measured until then, would be lost with them. */
    private Outcome run(List<String> words, Progress.Listener listener, Stop stop)
            throws IOException {
        List<String> command = new ArrayList<>();
        command.add(program.getPath());
        command.addAll(words);
        File printed = File.createTempFile("engine", ".out", temporary);
        File said = File.createTempFile("engine", ".err", temporary);
        try {
            ProcessBuilder builder = new ProcessBuilder(command);
            // Android has no /tmp.
            builder.environment().put("TMPDIR", temporary.getPath());
            builder.redirectOutput(printed).redirectError(said);
            Process process = builder.start();
            stop.ends(process);
            try (Follower follower = new Follower(said, listener)) {
                process.getOutputStream().close();
                while (!process.waitFor(LOOK_MS, TimeUnit.MILLISECONDS)) {
                    follower.follow();
                }
                follower.follow();
                String text = new String(Files.readAllBytes(printed.toPath()),
                        StandardCharsets.UTF_8);
                return new Outcome(text, follower.complaint(), process.exitValue() == 0);
            } finally {
                stop.ends(null);
                process.destroy();
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted");
        } finally {
            printed.delete();
            said.delete();
        }
    }

    /** Reads what is added to a file, line by line. */
    private static final class Follower implements Closeable {
        private final InputStream stream;
        private final Progress.Listener listener;
        private final StringBuilder complaint = new StringBuilder();
        private final ByteArrayOutputStream line = new ByteArrayOutputStream();

        Follower(File file, Progress.Listener listener) throws IOException {
            stream = new BufferedInputStream(new FileInputStream(file));
            this.listener = listener;
        }

        void follow() throws IOException {
            for (int next = stream.read(); next >= 0; next = stream.read()) {
                if (next == '\n') {
                    take(new String(line.toByteArray(), StandardCharsets.UTF_8));
                    line.reset();
                } else {
                    line.write(next);
                }
            }
        }

        private void take(String text) {
            Progress progress = Progress.of(text);
            if (progress == null) {
                complaint.append(text).append('\n');
            } else if (listener != null) {
                listener.onProgress(progress);
            }
        }

        String complaint() {
            return complaint.toString().trim();
        }

        @Override
        public void close() throws IOException {
            stream.close();
        }
    }
}
