package dev.iostep.phone.upload;

import static org.junit.Assert.assertNotNull;

import org.json.JSONException;
import org.json.JSONObject;
import org.junit.rules.ExternalResource;
import org.junit.rules.TemporaryFolder;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.TimeUnit;

/** A real {@code iostep serve} on this machine's own network. */
public final class Server extends ExternalResource {
    private final TemporaryFolder folder = new TemporaryFolder(new File("/var/tmp"));
    private File data;
    private Process process;
    /** Its address. */
    public String url;

    @Override
    protected void before() throws IOException {
        folder.create();
        data = folder.newFolder("results");
        Files.setPosixFilePermissions(data.toPath(), PosixFilePermissions.fromString("rwx------"));
        start("127.0.0.1:0");
    }

    private void start(String listen) throws IOException {
        process = new ProcessBuilder(System.getProperty("iostep.server"), "serve", "--json",
                "--data", data.getPath(), "--listen", listen)
                .redirectError(new File(folder.getRoot(), "log")).start();
        String line = new BufferedReader(new InputStreamReader(process.getInputStream()))
                .readLine();
        assertNotNull("the server does not start", line);
        try {
            url = new JSONObject(line).getString("url");
        } catch (JSONException error) {
            throw new IOException(line);
        }
    }

    /** As in airplane mode: nobody answers any more. */
    void stop() throws InterruptedException {
        process.destroy();
        process.waitFor(30, TimeUnit.SECONDS);
    }

    /** It answers again at the same address. */
    void startAgain() throws IOException {
        start(url.substring("http://".length()));
    }

    @Override
    protected void after() {
        process.destroyForcibly();
        folder.delete();
    }
}
