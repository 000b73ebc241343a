package dev.iostep.phone.upload;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import android.app.job.JobInfo;
import android.app.job.JobScheduler;

import org.bouncycastle.math.ec.rfc8032.Ed25519;
import org.json.JSONArray;
import org.json.JSONObject;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Locale;

import dev.iostep.phone.Phone;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.history.Upload;
import dev.iostep.phone.history.Uploads;
import dev.iostep.phone.measure.Engine;
import dev.iostep.phone.measure.PhoneSqlite;
import dev.iostep.phone.measure.Stop;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;

@RunWith(RobolectricTestRunner.class)
@Config(sdk = {26, 35})
public final class UploadTest {
    private static final String COOL = "{\"warnings\":[]}";
    private static final String HOT = "{\"warnings\":[{\"kind\":\"hot\",\"status\":3}]}";

    @Rule public final Phone phone = new Phone();
    @Rule public final Server server = new Server();

    private long run(String result, String conditions) {
        History history = History.of(phone.app);
        long id = history.begin("insert", "ENGINE", "inside", "Phone 8");
        history.end(id, Run.COMPLETE, result, conditions, null, 0);
        return id;
    }

    private String measured() throws Exception {
        Engine.Outcome outcome = new Engine(phone.app).bench(
                Arrays.asList("sqlite", "--transactions=50"), phone.directory(), null, new Stop());
        assertTrue(outcome.complaint, outcome.whole);
        return outcome.text;
    }

    private void agree() {
        Settings settings = new Settings(phone.app);
        assertTrue(settings.set(Parameter.SERVER, server.url));
        settings.agree(true);
    }

    private Upload upload(long run) {
        return new Uploads(phone.app).of(run);
    }

    private JobInfo job() {
        return phone.app.getSystemService(JobScheduler.class).getPendingJob(1);
    }

    @Test
    public void nothingWaitsUntilThePersonAgrees() throws Exception {
        long run = run(measured(), COOL);
        new Settings(phone.app).set(Parameter.SERVER, server.url);
        UploadJob.add(phone.app, run);
        assertNull(upload(run));
        assertNull(job());
    }

    @Test
    public void whatWaitsIsSentOnceThereIsANetworkAndCanBeTakenBack() throws Exception {
        agree();
        long run = run(measured(), COOL);
        UploadJob.add(phone.app, run);
        assertEquals(Upload.WAITING, upload(run).state);
        assertEquals(JobInfo.NETWORK_TYPE_ANY, job().getNetworkType());

        server.stop();
        Sender sender = new Sender(phone.app);
        assertFalse("nobody answered", sender.sendWaiting());
        assertEquals(Upload.WAITING, upload(run).state);

        server.startAgain();
        assertTrue(sender.sendWaiting());
        Upload sent = upload(run);
        assertEquals(Upload.SENT, sent.state);
        assertEquals("sqlite,transactions=50", sent.test);
        assertNotNull(sent.token);
        assertEquals(1, results());

        // Asked for again, it is not sent again.
        UploadJob.add(phone.app, run);
        assertEquals(Upload.SENT, upload(run).state);
        assertTrue(sender.sendWaiting());
        assertEquals(1, results());

        History.of(phone.app).delete(run);
        assertNull(sender.takeBack(upload(run)));
        assertEquals(Upload.TAKEN_BACK, upload(run).state);
        assertEquals(0, results());
        assertNull("what is gone may be taken back", sender.takeBack(sent));
    }

    /** How many results the server has. */
    private int results() throws Exception {
        try (java.io.InputStream in =
                new java.net.URL(server.url + "/api/v1/results").openStream()) {
            String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
            return new JSONObject(text).getJSONArray("results").length();
        }
    }

    @Test
    public void heatKeepsAResultFromTheRanking() throws Exception {
        agree();
        long run = run(measured(), HOT);
        UploadJob.add(phone.app, run);
        assertTrue(new Sender(phone.app).sendWaiting());
        String answer = upload(run).answer;
        assertTrue(answer, answer.startsWith("invalid") && answer.contains("the phone was hot"));
    }

    @Test
    public void whatIsSentNamesNoPlace() throws Exception {
        String text = measured();
        assertTrue(text.contains("/var/tmp/"));
        String sent = new Sender(phone.app).toSend(History.of(phone.app).run(run(text, COOL)));
        assertFalse(sent, sent.contains("/var/tmp"));
        assertTrue(new JSONObject(sent).getJSONArray("runs").length() == 1);
    }

    @Test
    public void thePhonesSqliteIsATestOfItsOwnAtTheServer() throws Exception {
        agree();
        Engine.Outcome outcome = new PhoneSqlite(new Engine(phone.app)).bench(
                Arrays.asList("sqlite", "--transactions=50"), phone.directory(), progress -> {},
                new Stop());
        assertTrue(outcome.complaint, outcome.whole);
        long run = run(outcome.text, COOL);
        UploadJob.add(phone.app, run);
        assertTrue(new Sender(phone.app).sendWaiting());
        assertEquals(upload(run).answer, Upload.SENT, upload(run).state);
        assertEquals("sqlite,library=hidden,transactions=50", upload(run).test);
    }

    @Test
    public void aResultThatCannotBeTrueIsRefusedWithTheReason() throws Exception {
        agree();
        JSONObject whole = new JSONObject(measured());
        JSONObject run = whole.getJSONObject("result").getJSONArray("runs").getJSONObject(0);
        run.put("operations", 51);
        long id = run(whole.toString(), COOL);
        UploadJob.add(phone.app, id);
        assertTrue("it does not wait for ever", new Sender(phone.app).sendWaiting());
        assertEquals(Upload.REFUSED, upload(id).state);
        assertTrue(upload(id).answer, upload(id).answer.contains("51"));
    }

    @Test
    public void whatWaitsIsForgottenWithTheAgreement() throws Exception {
        agree();
        long run = run(measured(), COOL);
        UploadJob.add(phone.app, run);
        new Settings(phone.app).agree(false);
        UploadJob.cancel(phone.app);
        assertNull(upload(run));
        assertNull(job());
    }

    @Test
    public void theModelsPlaceIsTheServers() throws Exception {
        agree();
        long run = run(valid(), COOL);
        UploadJob.add(phone.app, run);
        Sender sender = new Sender(phone.app);
        assertTrue(sender.sendWaiting());
        assertEquals("valid", upload(run).answer);
        JSONObject place = sender.place(upload(run), "ACME", "Phone 8");
        assertEquals(1, place.getInt("installations"));
        assertTrue("five installations make a rank", place.isNull("rank"));
        assertTrue(place.getDouble("median") > 0);
        assertNull(sender.place(upload(run), "ACME", "Phone 9"));
    }

    /** A result of six steady seconds by a phone that is made up, as its app would have it. */
    private String valid() throws Exception {
        JSONObject whole = new JSONObject(measured());
        JSONObject result = whole.getJSONObject("result");
        whole.remove("summary");
        result.put("warnings", new JSONArray());
        JSONObject environment = result.getJSONObject("environment");
        environment.put("device", JSONObject.NULL);
        environment.put("android", new JSONObject().put("manufacturer", "ACME")
                .put("model", "Phone 8").put("release", "14").put("brand", JSONObject.NULL)
                .put("device", JSONObject.NULL).put("fingerprint", JSONObject.NULL));
        result.getJSONArray("runs").put(0, new SteadyRun(6, 50).json());
        result.getJSONObject("job").put("transactions", 6 * 50);
        whole.put("summary", new JSONObject().put("warnings", new JSONArray()));
        return whole.toString();
    }

    @Test
    public void theKeyIsMadeOnceAndItsSignatureHolds() throws Exception {
        Key key = Key.of(phone.app);
        assertEquals(key.shown(), Key.of(phone.app).shown());
        byte[] nonce = new byte[40];
        byte[] body = "body".getBytes(StandardCharsets.UTF_8);
        byte[] hash = MessageDigest.getInstance("SHA-256").digest(body);
        byte[] message = concat("iostep upload 1\n".getBytes(StandardCharsets.UTF_8), nonce, hash);
        byte[] signature = Hex.decode(key.sign(nonce, body));
        assertTrue(Ed25519.verify(signature, 0, Hex.decode(key.shown()), 0, message, 0,
                message.length));
        assertEquals(32, Files.size(
                Paths.get(phone.app.getNoBackupFilesDir().getPath(), "key")));
    }

    private static byte[] concat(byte[]... parts) {
        java.io.ByteArrayOutputStream all = new java.io.ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.write(part, 0, part.length);
        }
        return all.toByteArray();
    }

    /** RFC 8032, section 7.1, test 1: the key pair of a secret key. */
    @Test
    public void aKeyIsThatOfTheStandard() {
        Key key = new Key(Hex.decode(
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"));
        assertEquals("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
                key.shown());
    }

    @Test
    public void anAddressThatIsNoServersIsToldAndNotTriedForEver() throws Exception {
        agree();
        long run = run(measured(), COOL);
        new Uploads(phone.app).add(run, server.url + "/elsewhere");
        assertTrue(new Sender(phone.app).sendWaiting());
        assertEquals(Upload.REFUSED, upload(run).state);
        assertFalse(upload(run).answer.isEmpty());
        // With the right one it can be sent.
        UploadJob.add(phone.app, run);
        assertTrue(new Sender(phone.app).sendWaiting());
        assertEquals(Upload.SENT, upload(run).state);
    }

    /** Something answers there, and not as a server of results does. */
    @Test
    public void anAnswerThatIsNoneWaitsWithTheReason() throws Exception {
        assertWaits("hello");
    }

    /** Names come back in a path and in a header: those of a server that means harm are none. */
    @Test
    public void aNameThatIsNoneIsNotKept() throws Exception {
        String nonce = "{\"nonce\":\"00ff\"}";
        assertWaits(nonce, "{\"id\":\"../../x\",\"delete_token\":\"00\"}");
        assertWaits(nonce, "{\"id\":\"00\",\"delete_token\":\"0\\r\\nx: y\"}");
    }

    /** What is sent to somebody with these answers is kept, with the reason. */
    private void assertWaits(String... answers) throws Exception {
        agree();
        long run = run(measured(), COOL);
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Thread portal = new Thread(() -> {
                for (String answer : answers) {
                    try (Socket caller = socket.accept()) {
                        answer(caller, answer);
                    } catch (IOException gone) {
                        // The test says what is wrong.
                    }
                }
            });
            portal.start();
            new Uploads(phone.app).add(run, "http://127.0.0.1:" + socket.getLocalPort());
            assertFalse(new Sender(phone.app).sendWaiting());
            portal.join();
        }
        assertEquals(Upload.WAITING, upload(run).state);
        assertTrue(upload(run).answer, upload(run).answer.contains("no server of results"));
        new Uploads(phone.app).forgetWaiting();
    }

    private static void answer(Socket caller, String answer) throws IOException {
        DataInputStream in = new DataInputStream(caller.getInputStream());
        int length = 0;
        for (String line = in.readLine(); line != null && !line.isEmpty();
                line = in.readLine()) {
            if (line.toLowerCase(Locale.ROOT).startsWith("content-length: ")) {
                length = Integer.parseInt(line.substring("content-length: ".length()));
            }
        }
        in.readFully(new byte[length]);
        caller.getOutputStream().write(("HTTP/1.1 200 OK\r\nContent-Length: " + answer.length()
                + "\r\nConnection: close\r\n\r\n" + answer).getBytes(StandardCharsets.UTF_8));
    }
}
