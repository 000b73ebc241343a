package dev.iostep.phone.measure;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import android.os.Build;

import org.json.JSONArray;
import org.json.JSONObject;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;

import java.io.File;
import java.util.ArrayList;
import java.util.List;

import dev.iostep.phone.Phone;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;

@RunWith(RobolectricTestRunner.class)
@Config(sdk = {26, 35})
public final class RefusalTest {
    private static final long CAP = 1L << 40;

    @Rule public final Phone phone = new Phone();

    private List<Step> steps(Button button) {
        return button.plan(new Settings(phone.app), new WriteEstimate(workload -> 0));
    }

    private String refusal(File directory, List<Step> steps, long written, long cap) {
        return Refusal.of(phone.app, Conditions.now(phone.app), directory, steps, written, cap);
    }

    @Test
    public void aChargedPhoneWithRoomMayBegin() throws Exception {
        assertNull(refusal(phone.directory(), steps(Button.ALL), 0, CAP));
    }

    @Test
    public void aLowBatteryIsNotMeasuredAlsoWhileItCharges() throws Exception {
        phone.battery(19, true);
        String words = refusal(phone.directory(), steps(Button.ALL), 0, CAP);
        assertTrue(words, words.contains("19 %") && words.contains("20 %"));
        phone.battery(20, false);
        assertNull(refusal(phone.directory(), steps(Button.ALL), 0, CAP));
    }

    /** A storage with so many bytes free. */
    private File free(long bytes) throws Exception {
        return new File(phone.directory().getPath()) {
            @Override
            public long getUsableSpace() {
                return bytes;
            }
        };
    }

    @Test
    public void withoutRoomNothingBegins() throws Exception {
        String words = refusal(free(Refusal.LEAST_FREE - 1), steps(Button.ALL), 0, CAP);
        assertTrue(words, words.contains("Make room"));
    }

    /** Also while the tests take their part; those of the phone's SQLite ask nobody else. */
    @Test
    public void roomIsLeftWhileATestTakesItsPart() throws Exception {
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.WRITE_SIZE, "10GiB");
        long needed = Refusal.LEAST_FREE + (10L << 30);
        String words = refusal(free(needed - 1), steps(Button.FILE), 0, CAP);
        assertTrue(words, words.contains("11 GiB") && words.contains("1 GiB stay free"));
        assertNull(refusal(free(needed), steps(Button.FILE), 0, CAP));
        settings.set(Parameter.VENDOR, "phone");
        assertTrue(refusal(free(Refusal.LEAST_FREE), steps(Button.SQLITE), 0, CAP)
                .contains("Make room"));
    }

    @Test
    public void whatIsTooMuchToBeCountedPassesNoCap() throws Exception {
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.TRANSACTIONS, "1000000");
        settings.set(Parameter.SQLITE_THREADS, "100");
        settings.set(Parameter.TABLES, "20");
        settings.set(Parameter.DATABASES, "20");
        settings.set(Parameter.STATEMENTS, "1000");
        settings.set(Parameter.ROW, "1024GiB");
        List<Step> steps = steps(Button.SQLITE);
        assertEquals(Long.MAX_VALUE, Refusal.bytes(steps));
        String words = refusal(free(Long.MAX_VALUE), steps, 1000, CAP);
        assertTrue(words, words.contains("Allow more in Setting"));
    }

    /** What ends by time may do more than was thought, and never counts as less. */
    @Test
    public void whatWasDoneCountsWhereItIsMoreThanTheEstimate() {
        Step step = new Step(Workload.RANKED_WRITE, Step.By.ENGINE, new Settings(phone.app),
                new WriteEstimate(workload -> 100));
        assertEquals(step.bytes, step.written(1, 10));
        long operations = 60 * 50_000;
        assertEquals((5 * 64L << 20) + operations * 2 * 4096, step.written(1, operations));
        assertEquals(step.bytes / 2, step.written(0.5, 0));
    }

    @Test
    public void aCardThatWasTakenOutIsNamed() {
        File gone = new File("/proc/no-card/bench");
        String words = refusal(gone, steps(Button.ALL), 0, CAP);
        assertTrue(words, words.contains(gone.getPath()) && words.contains("Insert"));
    }

    @Test
    public void theCapCountsWhatWasWrittenAndWhatWouldBe() throws Exception {
        List<Step> steps = steps(Button.FILE);
        // Two tests write 10 MiB over as many, and two read 32 MiB that are made before.
        long bytes = (2 * 2 * 10L + 2 * 32) << 20;
        assertEquals(bytes, Refusal.bytes(steps));
        assertNull(refusal(phone.directory(), steps, 1000, 1000 + bytes));
        String words = refusal(phone.directory(), steps, 1001, 1000 + bytes);
        assertTrue(words, words.contains("Allow more in Setting"));
    }

    /** A minute of transactions is said by the rate that this phone had. */
    @Test
    public void whatEndsByTimeIsEstimatedByTheLastRate() {
        Settings settings = new Settings(phone.app);
        long slow = new WriteEstimate(workload -> 100).of(Workload.RANKED_WAL, settings);
        long fast = new WriteEstimate(workload -> 1000).of(Workload.RANKED_WAL, settings);
        assertEquals(10 * slow, fast);
        assertTrue(fast > 60 * 1000 * 4096);
        assertTrue(new WriteEstimate(workload -> 0).of(Workload.RANKED_WAL, settings) > fast);
    }

    @Test
    public void progressTellsHowMuchIsWritten() {
        assertEquals(0.25, new Progress(1, 2, true, 0.5, -1).written(0), 1e-9);
        assertEquals(0.25, new Progress(1, 1, false, 0.5, -1).written(0.5), 1e-9);
        assertEquals(0.75, new Progress(1, 1, true, 0.5, -1).written(0.5), 1e-9);
        assertEquals(1, new Progress(2, 2, true, 1, -1).written(1), 1e-9);
    }

    @Test
    public void noTestIsNothingToBegin() throws Exception {
        assertTrue(refusal(phone.directory(), new ArrayList<>(), 0, CAP).contains("No test"));
    }

    @Test
    public void eachSqliteTestIsOneOfEveryEngineThatIsAskedFor() {
        assertEquals(4 + 2 * 3, steps(Button.ALL).size());
        assertEquals(5, steps(Button.RANKED).size());
        assertEquals(0, steps(Button.CUSTOM).size());
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.VENDOR, "phone");
        assertEquals(3, steps(Button.SQLITE).size());
        assertEquals(Step.By.PHONE, steps(Button.SQLITE).get(0).by);
        settings.set(Parameter.JOURNAL, "waldio");
        assertEquals(Step.By.ENGINE, steps(Button.SQLITE).get(0).by);
    }

    /** Android tells no headroom to who asks twice within a second. */
    @Test
    public void aHeadroomThatWasJustToldHolds() throws Exception {
        assertEquals(0.7f, Conditions.headroom(0.7f, 10_000), 0);
        assertEquals(0.7f, Conditions.headroom(Float.NaN, 10_900), 0);
        assertTrue(Float.isNaN(Conditions.headroom(Float.NaN, 60_000)));
        assertTrue(Float.isNaN(Conditions.headroom(Float.NaN, 60_100)));
    }

    @Test
    public void noHeadroomIsHeat() throws Exception {
        Conditions cool = new Conditions(80, true, false, 0, 0.99f);
        Conditions near = new Conditions(80, true, false, 0, 1f);
        assertEquals("[]", Conditions.warnings(cool, cool).toString());
        assertEquals("[{\"kind\":\"hot\",\"status\":3}]",
                Conditions.warnings(near, cool).toString());
        assertEquals("[{\"kind\":\"hot\",\"status\":4}]", Conditions.warnings(cool,
                new Conditions(80, true, false, 4, Float.NaN)).toString());
    }

    @Test
    public void whatSpoilsAFigureIsAWarningBeforeOrAfter() throws Exception {
        Conditions cool = Conditions.now(phone.app);
        assertEquals("[]", Conditions.warnings(cool, cool).toString());
        phone.battery(80, false);
        phone.saver(true);
        phone.heat(3);
        Conditions hot = Conditions.now(phone.app);
        for (JSONArray warnings : new JSONArray[] {
            Conditions.warnings(cool, hot), Conditions.warnings(hot, cool)}) {
            assertEquals("on_battery", warnings.getJSONObject(0).getString("kind"));
            assertEquals("battery_saver", warnings.getJSONObject(1).getString("kind"));
            if (Build.VERSION.SDK_INT < Build.VERSION_CODES.Q) {
                assertEquals("heat is not told there", 2, warnings.length());
                continue;
            }
            JSONObject heat = warnings.getJSONObject(2);
            assertEquals("hot", heat.getString("kind"));
            assertEquals(3, heat.getInt("status"));
        }
    }
}
