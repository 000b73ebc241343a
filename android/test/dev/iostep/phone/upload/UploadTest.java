package dev.iostep.phone.upload;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.job.JobInfo;
import android.app.job.JobScheduler;

import org.bouncycastle.math.ec.rfc8032.Ed25519;
import org.json.JSONArray;
import org.json.JSONObject;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;

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
        long id = history.begin("insert", "ENGINE", Phone.INSIDE, "Phone 8", 0);
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
        agreeTo(server.url);
    }

    private void agreeTo(String address) {
        assertTrue(new Settings(phone.app).set(Parameter.SERVER, address));
        UploadJob.agree(phone.app);
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
        UploadJob.send(phone.app, run);
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
        Engine.Outcome outcome = new PhoneSqlite(phone.app, new Engine(phone.app)).bench(
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
        UploadJob.send(phone.app, run);
        assertNotNull(job());
        UploadJob.cancel(phone.app);
        assertFalse(new Settings(phone.app).mayUpload());
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
    public void anAddressThatIsNoServersIsTold() throws Exception {
        agreeTo(server.url + "/elsewhere");
        long run = run(measured(), COOL);
        UploadJob.add(phone.app, run);
        assertFalse(new Sender(phone.app).sendWaiting());
        assertTrue(upload(run).answer, upload(run).answer.contains("/elsewhere: HTTP 404"));
        // With the right one it can be sent.
        agree();
        UploadJob.add(phone.app, run);
        assertTrue(new Sender(phone.app).sendWaiting());
        assertEquals(Upload.SENT, upload(run).state);
    }

    /** Something answers there, and not as a server of results does. */
    @Test
    public void anAnswerThatIsNoneWaitsWithTheReason() throws Exception {
        assertWaits("no server of results", "200 OK", "hello");
    }

    /** Names come back in a path and in a header: those of a server that means harm are none. */
    @Test
    public void aNameThatIsNoneIsNotKept() throws Exception {
        String nonce = "{\"nonce\":\"00ff\"}";
        assertWaits("no server of results", "200 OK", nonce,
                "{\"id\":\"../../x\",\"delete_token\":\"00\"}");
        assertWaits("no server of results", "200 OK", nonce,
                "{\"id\":\"00\",\"delete_token\":\"0\\r\\nx: y\"}");
    }

    /** A network that wants a person to sign in answers in the server's place. */
    @Test
    public void whatSomebodyElseRefusesWaits() throws Exception {
        for (String status : new String[] {"302 Found", "403 Forbidden", "404 Not Found",
            "408 Request Timeout", "511 Network Authentication Required"}) {
            assertWaits("HTTP " + status.substring(0, 3), status, "<html>sign in</html>");
        }
    }

    @Test
    @Config(qualifiers = "de")
    public void theReasonIsInThePersonsLanguage() throws Exception {
        assertWaits("Dort antwortet kein Server", "200 OK", "hello");
    }

    /** What is sent to somebody with these answers is kept, with the reason. */
    private void assertWaits(String reason, String status, String... answers) throws Exception {
        long run = run(measured(), COOL);
        try (Portal portal = new Portal(status, () -> {}, answers)) {
            agreeTo(portal.url());
            UploadJob.add(phone.app, run);
            assertFalse(new Sender(phone.app).sendWaiting());
            portal.join();
        }
        assertEquals(Upload.WAITING, upload(run).state);
        assertTrue(upload(run).answer, upload(run).answer.contains(reason));
        UploadJob.cancel(phone.app);
    }

    @Test
    public void whoWithdrawsMeanwhileCanTakeBackWhatWentOutAndNothingFollows() throws Exception {
        long first = run(measured(), COOL);
        long second = run(measured(), COOL);
        try (Portal portal = new Portal("200 OK", () -> UploadJob.cancel(phone.app),
                "{\"nonce\":\"00ff\"}", "{\"id\":\"0a\",\"delete_token\":\"0b\"}",
                "{\"nonce\":\"00fe\"}", "{\"id\":\"0c\",\"delete_token\":\"0d\"}")) {
            agreeTo(portal.url());
            UploadJob.add(phone.app, first);
            UploadJob.add(phone.app, second);
            new Sender(phone.app).sendWaiting();
            assertEquals(2, portal.asked());
            Upload sent = upload(first);
            assertEquals(Upload.SENT, sent.state);
            assertEquals("0a 0b " + portal.url(), sent.id + " " + sent.token + " " + sent.server);
            assertNull(upload(second));
        }
    }

    /** Also if it is withdrawn while the engine makes ready what is sent. */
    @Test
    public void whatIsNotAgreedToAnyMoreIsNotSent() throws Exception {
        agree();
        long run = run(measured(), COOL);
        UploadJob.add(phone.app, run);
        File asked = new File(phone.directory(), "asked");
        File withdrawn = new File(asked.getPath() + "-withdrawn");
        phone.engine("touch " + asked + "; while [ ! -e " + withdrawn + " ]; do sleep 0.05; done\n"
                + "exec " + System.getProperty("iostep.engine") + " \"$@\"");
        Thread sending = new Thread(() -> new Sender(phone.app).sendWaiting());
        sending.start();
        Phone.await("the engine", asked::exists);
        UploadJob.cancel(phone.app);
        assertTrue(withdrawn.createNewFile());
        sending.join();
        assertEquals(0, results());
        assertNull(upload(run));
    }

    @Test
    public void whatWaitsIsSentToTheServerThatWasAgreedToAlone() throws Exception {
        agree();
        long run = run(measured(), COOL);
        UploadJob.add(phone.app, run);
        String address = server.url;
        Settings settings = new Settings(phone.app);
        assertTrue(settings.set(Parameter.SERVER, "http://127.0.0.1:1"));
        assertTrue("nothing may be sent", new Sender(phone.app).sendWaiting());
        assertEquals(0, results());
        // Back at the address that was agreed to.
        assertTrue(settings.set(Parameter.SERVER, address));
        assertEquals(1, new Uploads(phone.app).waiting(address).size());

        agreeTo("http://127.0.0.1:1");
        assertNull(upload(run));
        assertTrue(new Sender(phone.app).sendWaiting());
        assertEquals(0, results());
    }

    @Test
    public void aJobThatIsThereIsNotReplaced() throws Exception {
        agree();
        UploadJob.send(phone.app, run(measured(), COOL));
        JobInfo first = job();
        UploadJob.schedule(phone.app);
        assertSame(first, job());
    }

    /** As Android runs it once there is a network. */
    @Test
    public void theJobSendsAndSaysWhenItIsDone() throws Exception {
        agree();
        long run = run(measured(), COOL);
        UploadJob.send(phone.app, run);
        server.stop();
        UploadJob job = Robolectric.setupService(UploadJob.class);
        assertTrue("it works on", job.onStartJob(null));
        Phone.await("the end of it", () -> shadowOf(job).getIsJobFinished());
        assertTrue("nobody answered", shadowOf(job).getIsRescheduleNeeded());
        assertEquals(Upload.WAITING, upload(run).state);

        server.startAgain();
        UploadJob again = Robolectric.setupService(UploadJob.class);
        assertTrue(again.onStartJob(null));
        Phone.await("the end of it", () -> shadowOf(again).getIsJobFinished());
        assertFalse(shadowOf(again).getIsRescheduleNeeded());
        assertEquals(Upload.SENT, upload(run).state);
        assertEquals(1, results());
    }

    /** The network goes away while the server makes its answer. */
    @Test
    public void aJobThatAndroidStopsAsksForAnotherGo() throws Exception {
        long run = run(measured(), COOL);
        CountDownLatch asked = new CountDownLatch(1);
        CountDownLatch answer = new CountDownLatch(1);
        UploadJob job = Robolectric.setupService(UploadJob.class);
        try (Portal portal = new Portal("200 OK", () -> {
            asked.countDown();
            try {
                answer.await();
            } catch (InterruptedException error) {
                throw new AssertionError(error);
            }
        }, "{\"nonce\":\"00ff\"}", "{}")) {
            agreeTo(portal.url());
            UploadJob.add(phone.app, run);
            assertTrue(job.onStartJob(null));
            Phone.await("the request", () -> asked.getCount() == 0);
            assertTrue("another go", job.onStopJob(null));
            assertFalse(shadowOf(job).getIsJobFinished());
            answer.countDown();
            Phone.await("the end of it", () -> shadowOf(job).getIsJobFinished());
        }
        assertTrue(shadowOf(job).getIsRescheduleNeeded());
        assertEquals(Upload.WAITING, upload(run).state);
    }

    @Test
    public void aJobWithoutAnAgreementDoesNothing() throws Exception {
        UploadJob job = Robolectric.setupService(UploadJob.class);
        assertFalse(job.onStartJob(null));
    }

    /** Two that send at once send each result once. */
    @Test
    public void oneSendsAtATime() throws Exception {
        long run = run(measured(), COOL);
        try (Portal portal = new Portal("200 OK", () -> {}, "{\"nonce\":\"00ff\"}",
                "{\"id\":\"0a\",\"delete_token\":\"0b\"}", "{\"nonce\":\"00fe\"}",
                "{\"id\":\"0a\",\"delete_token\":\"0b\"}")) {
            agreeTo(portal.url());
            UploadJob.add(phone.app, run);
            Thread other = new Thread(() -> new Sender(phone.app).sendWaiting());
            other.start();
            new Sender(phone.app).sendWaiting();
            other.join();
            assertEquals(2, portal.asked());
        }
    }
}
