package dev.iostep.phone.history;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import android.content.ContentValues;
import android.database.sqlite.SQLiteDatabase;
import android.database.sqlite.SQLiteFullException;
import android.net.Uri;
import android.os.ParcelFileDescriptor;

import org.json.JSONArray;
import org.json.JSONObject;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;

import java.io.File;
import java.io.FileNotFoundException;
import java.io.StringWriter;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;

import dev.iostep.phone.Phone;
import dev.iostep.phone.PhoneApp;
import dev.iostep.phone.measure.Storage;

@RunWith(RobolectricTestRunner.class)
@Config(sdk = {26, 35})
public final class HistoryTest {
    static final String RESULT = "{\"result\":{\"warnings\":[{\"kind\":\"unreadable\"}],\"runs\":["
            + "{\"device\":{\"write\":{\"bytes\":5000}}}]},\"summary\":{\"warnings\":[],"
            + "\"estimates\":[{\"measure\":\"operations_per_second\",\"median\":RATE}]}}";
    private static final String CONDITIONS =
            "{\"warnings\":[{\"kind\":\"hot\",\"status\":3},{\"kind\":\"unreadable\"}]}";

    private static final Storage CARD =
            new Storage(new File("/nowhere"), "1234-ABCD", "Card \"1\"");

    @Rule public final Phone phone = new Phone();

    private History history() {
        return History.of(phone.app);
    }

    private long add(String test, String state, double rate) {
        long id = history().begin(test, "ENGINE", CARD, "Phone 8", 0);
        String result = rate > 0 ? RESULT.replace("RATE", "" + rate) : null;
        history().end(id, state, result, CONDITIONS, rate > 0 ? null : "no room", 100);
        return id;
    }

    /** Each version that was ever published is opened by this one, with what it kept. */
    @Test
    public void aHistoryOfEachEarlierVersionIsKept() {
        for (int version = 1; version < Schema.STEPS.length; version++) {
            RuntimeEnvironment.getApplication().deleteDatabase(History.FILE);
            File file = phone.app.getDatabasePath(History.FILE);
            file.getParentFile().mkdirs();
            SQLiteDatabase old = SQLiteDatabase.openOrCreateDatabase(file, null);
            for (int step = 0; step < version; step++) {
                for (String statement : Schema.STEPS[step]) {
                    old.execSQL(statement);
                }
            }
            ContentValues run = new ContentValues();
            run.put("start_ms", 7);
            run.put("test", "insert");
            run.put("by", "PHONE");
            run.put("state", Run.COMPLETE);
            run.put("storage", "Internal storage");
            run.put("model", "Phone 8");
            run.put("rate", 12.5);
            old.insertOrThrow("run", null, run);
            old.execSQL("UPDATE written SET bytes = 123");
            old.setVersion(version);
            old.close();

            history().close();
            List<Run> runs = history().runs(null, null);
            assertEquals("of version " + version, 1, runs.size());
            assertEquals(12.5, runs.get(0).rate, 0);
            assertEquals(123, history().written());
            assertEquals("its storage is known by its name", 12.5,
                    history().latestRate("insert", Phone.INSIDE), 0);
            assertEquals(0, history().latestRate("insert", CARD), 0);
            new Uploads(phone.app).add(runs.get(0).id, "http://x");
            assertEquals(1, new Uploads(phone.app).waiting("http://x").size());
        }
    }

    @Test
    public void aRunWhoseProcessDiedIsSaidToHaveDied() {
        long id = history().begin("insert", "ENGINE", Phone.INSIDE, "Phone 8", 0);
        assertEquals(Run.RUNNING, history().run(id).state);
        assertEquals(1, history().findDied());
        assertEquals(Run.DIED, history().run(id).state);
        assertEquals(0, history().findDied());
    }

    @Test
    public void runsAreFoundByTestAndState() {
        add("insert", Run.COMPLETE, 10);
        add("insert", Run.FAILED, 0);
        add("seq-write", Run.COMPLETE, 20);
        assertEquals(3, history().runs(null, null).size());
        assertEquals(2, history().runs("insert", null).size());
        assertEquals(1, history().runs("insert", Run.COMPLETE).size());
        assertEquals("seq-write", history().runs(null, null).get(0).test);
    }

    /** Also one that is longer than what Android reads of a row at once. */
    @Test
    public void aResultIsKeptToTheLetter() {
        for (int letters : new int[] {0, 249_999, 250_000, 250_001, 5_000_000}) {
            StringBuilder result = new StringBuilder("{\"result\":{},\"summary\":{}}");
            for (int at = result.length(); at < letters; at++) {
                result.append((char) (' ' + at % 3 * 0x400));
            }
            long id = history().begin("insert", "ENGINE", Phone.INSIDE, "Phone 8", 0);
            history().end(id, Run.COMPLETE, result.toString(), CONDITIONS, null, 0);
            assertEquals(letters + "", result.toString(), history().result(id));
        }
        assertNull(history().result(add("insert", Run.FAILED, 0)));
        assertNull(history().result(-1));
    }

    @Test
    public void whatWasWrittenIsCountedOverTheLifeAlsoOfDeletedRuns() {
        // What the device counted is more than what was estimated; without it the estimate counts.
        long first = add("insert", Run.COMPLETE, 10);
        add("insert", Run.FAILED, 0);
        assertEquals(5000 + 100, history().written());
        history().delete(first);
        assertEquals(5000 + 100, history().written());
        assertNull(history().run(first));
    }

    @Test
    public void aRunThatDiedCountsWhatItWasToWrite() {
        long died = history().begin("insert", "ENGINE", CARD, "Phone 8", 7000);
        assertEquals(7000, history().written());
        assertEquals(1, history().findDied());
        assertEquals(7000, history().written());
        long ended = history().begin("insert", "ENGINE", CARD, "Phone 8", 7000);
        history().end(ended, Run.FAILED, null, CONDITIONS, "no room", 100);
        assertEquals("an estimate is put right", 7000 + 100, history().written());
        history().delete(died);
        assertEquals(7000 + 100, history().written());
    }

    /** A storage stays what it is in another language, and a card in another slot. */
    @Test
    public void aStorageIsItsVolumeAndNotItsName() {
        Storage german = new Storage(new File("/nowhere"), "internal", "Interner Speicher");
        Storage other = new Storage(new File("/nowhere"), "5678-ABCD", CARD.name);
        double rate = 1;
        for (Storage storage : new Storage[] {german, Phone.INSIDE, CARD, other}) {
            long id = history().begin("insert", "ENGINE", storage, "Phone 8", 0);
            history().end(id, Run.COMPLETE, RESULT.replace("RATE", "" + rate++), CONDITIONS, null,
                    0);
        }
        List<Run> runs = history().runs(null, null);
        assertEquals(Arrays.asList(1.0, 2.0), history().rates(runs.get(3)));
        assertEquals(Arrays.asList(3.0), history().rates(runs.get(1)));
        assertEquals(2, history().latestRate("insert", german), 0);
        assertEquals(3, history().latestRate("insert", CARD), 0);
        assertEquals("Internal storage", Storage.name(phone.app, runs.get(3)));
    }

    /** What the phone has no room for in the history comes into it later. */
    @Test
    public void aResultThatFindsNoRoomIsKept() {
        long id = history().begin("insert", "ENGINE", CARD, "Phone 8", 500);
        StringBuilder result = new StringBuilder(RESULT.replace("RATE", "10"));
        for (int at = 0; at < 1_000_000; at++) {
            result.append(' ');
        }
        SQLiteDatabase database = history().getWritableDatabase();
        database.setMaximumSize(1);
        assertThrows(SQLiteFullException.class, () -> history().end(id, Run.COMPLETE,
                result.toString(), CONDITIONS, null, 100));
        PhoneApp app = (PhoneApp) phone.app;
        app.onCreate();
        assertTrue(app.trouble(), app.trouble().contains("Make room on the phone"));
        database.setMaximumSize(1L << 30);
        assertEquals(0, history().findDied());
        assertEquals(Run.COMPLETE, history().run(id).state);
        assertEquals(result.toString(), history().result(id));
        assertEquals(5000, history().written());
    }

    /** Whether it was in the history or waited for room, and whatever number it had. */
    @Test
    public void aResultOutlivesTheHistoryThatItBeganIn() throws Exception {
        byte[] garbage = new byte[8192];
        Arrays.fill(garbage, (byte) 'x');
        File file = phone.app.getDatabasePath(History.FILE);
        String result = RESULT.replace("RATE", "10");
        long first = history().begin("insert", "ENGINE", CARD, "Phone 8", 500);
        history().close();
        Files.write(file.toPath(), garbage);
        history().end(first, Run.COMPLETE, result, CONDITIONS, null, 100);
        assertEquals(1, history().runs(null, null).size());

        StringBuilder longer = new StringBuilder(result);
        for (int at = 0; at < 1_000_000; at++) {
            longer.append(' ');
        }
        long waits = history().begin("update", "ENGINE", CARD, "Phone 8", 500);
        history().getWritableDatabase().setMaximumSize(1);
        assertThrows(SQLiteFullException.class, () -> history().end(waits, Run.COMPLETE,
                longer.toString(), CONDITIONS, null, 100));
        history().close();
        Files.write(file.toPath(), garbage);
        for (long other = 0; other < waits; ) {
            other = history().begin("delete", "ENGINE", CARD, "Phone 8", 500);
            history().end(other, Run.COMPLETE, result, CONDITIONS, null, 100);
        }
        history().findDied();
        List<Run> found = history().runs("update", null);
        assertEquals(1, found.size());
        assertEquals(longer.toString(), history().result(found.get(0).id));
        assertEquals((int) waits, history().runs("delete", Run.COMPLETE).size());
    }

    private File damaged(int number) {
        return new File(phone.app.getDatabasePath(History.FILE).getParentFile(),
                "damaged-" + number + "-" + History.FILE);
    }

    /** Android itself would delete it without a word. */
    @Test
    public void aHistoryThatIsDamagedIsPutAsideAndTold() throws Exception {
        PhoneApp app = (PhoneApp) phone.app;
        for (int number = 1; number <= 2; number++) {
            add("insert", Run.COMPLETE, 10);
            assertEquals("a new one works", 1, history().runs(null, null).size());
            assertNull("nothing was damaged yet", number == 1 ? app.damaged() : null);
            history().close();
            byte[] garbage = new byte[8192];
            Arrays.fill(garbage, (byte) ('x' + number));
            File file = phone.app.getDatabasePath(History.FILE);
            Files.write(file.toPath(), garbage);
            app.onCreate();
            assertNull(app.trouble(), app.trouble());
            assertArrayEquals(garbage, Files.readAllBytes(damaged(number).toPath()));
            assertTrue(app.damaged(), app.damaged().contains(damaged(number).getName()));
            assertEquals(0, history().runs(null, null).size());
        }
    }

    /** Parts of it: it may be opened, and found to be damaged when it is read. */
    @Test
    public void aDamageThatIsFoundLateIsToldToo() throws Exception {
        PhoneApp app = (PhoneApp) phone.app;
        for (int number = 1; number <= 2; number++) {
            for (int run = 0; run < 100; run++) {
                add("insert", Run.COMPLETE, 10);
            }
            history().close();
            File file = phone.app.getDatabasePath(History.FILE);
            byte[] bytes = Files.readAllBytes(file.toPath());
            int from = number == 1 ? 4096 : bytes.length / 2;
            Arrays.fill(bytes, from, bytes.length, (byte) 'x');
            Files.write(file.toPath(), bytes);
            app.onCreate();
            assertNull(app.trouble(), app.trouble());
            assertEquals("a new one was begun", 0, history().runs(null, null).size());
            assertArrayEquals(bytes, Files.readAllBytes(damaged(number).toPath()));
            assertTrue(app.damaged(), app.damaged().contains(damaged(number).getName()));
        }
    }

    /** Earlier versions kept what an engine that was killed had printed until then. */
    @Test
    public void halfAResultDoesNotSpoilAnExport() throws Exception {
        add("insert", Run.COMPLETE, 10);
        long half = history().begin("insert", "ENGINE", CARD, "Phone 8", 0);
        history().end(half, Run.PARTIAL, "{\"result\":{\"warn", CONDITIONS, null, 0);
        add("insert", Run.COMPLETE, 20);
        StringWriter json = new StringWriter();
        Export.json(history(), history().runs(null, null), json);
        assertEquals(2, new JSONArray(json.toString()).length());
    }

    @Test
    public void anExportHasTheConditionsAmongTheWarningsOnce() throws Exception {
        long id = add("insert", Run.COMPLETE, 10);
        JSONObject whole = new JSONObject(Export.result(history(), history().run(id)));
        JSONArray warnings = whole.getJSONObject("result").getJSONArray("warnings");
        assertEquals(2, warnings.length());
        assertEquals("hot", warnings.getJSONObject(1).getString("kind"));
        StringWriter json = new StringWriter();
        add("insert", Run.FAILED, 0);
        Export.json(history(), history().runs(null, null), json);
        assertEquals(1, new JSONArray(json.toString()).length());
        StringWriter csv = new StringWriter();
        Export.csv(history().runs(null, null), csv);
        String[] lines = csv.toString().split("\n");
        assertEquals(3, lines.length);
        assertTrue(lines[2], lines[2].endsWith(",insert,engine,complete,\"Card \"\"1\"\"\",10.0,0.0"));
    }

    /** Three operations in the last millisecond are no rate of 3000 a second. */
    @Test
    public void aFractionOfASecondAtTheEndIsNotScaledUp() {
        String seconds = "";
        for (String second : new String[] {"1000000000, \"operations\": 500",
            "1000000000, \"operations\": 400", "1000000, \"operations\": 3"}) {
            seconds += (seconds.isEmpty() ? "" : ",") + "{\"length_ns\": " + second + "}";
        }
        Figures figures = Figures.of("{\"result\":{\"runs\":[{\"seconds\":[" + seconds
                + "]}]},\"summary\":{}}");
        assertArrayEquals(new double[] {500, 400}, figures.perSecond(), 0);
    }

    @Test
    public void nothingButASharedFileIsShown() throws Exception {
        SharedFile provider = Robolectric.setupContentProvider(SharedFile.class,
                "dev.iostep.phone.shared");
        File shared = new File(SharedFile.directory(phone.app), "a.json");
        Files.write(shared.toPath(), Arrays.asList("{}"));
        try (ParcelFileDescriptor open = provider.openFile(SharedFile.uri(shared), "r")) {
            assertEquals(3, open.getStatSize());
        }
        File secret = new File(phone.app.getCacheDir(), "secret");
        Files.write(secret.toPath(), Arrays.asList("x"));
        for (String path : new String[] {"..%2Fsecret", "../secret", "x/a.json", ".a", ""}) {
            Uri uri = Uri.parse("content://dev.iostep.phone.shared/" + path);
            assertThrows(path, FileNotFoundException.class, () -> provider.openFile(uri, "r"));
        }
        assertThrows(FileNotFoundException.class,
                () -> provider.openFile(SharedFile.uri(shared), "rw"));
    }
}
