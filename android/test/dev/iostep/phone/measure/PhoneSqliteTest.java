package dev.iostep.phone.measure;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import org.json.JSONObject;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

import dev.iostep.phone.Phone;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;

@RunWith(RobolectricTestRunner.class)
@Config(sdk = {26, 35})
public final class PhoneSqliteTest {
    @Rule public final Phone phone = new Phone();

    private Engine.Outcome run(Workload workload, Stop stop) throws Exception {
        Settings settings = new Settings(phone.app);
        List<String> arguments = workload.arguments(settings);
        File directory = phone.directory();
        Engine.Outcome outcome = new PhoneSqlite(phone.app, new Engine(phone.app))
                .bench(arguments, directory, progress -> {}, stop);
        assertEquals("what it made is gone", 0, directory.list().length);
        return outcome;
    }

    @Test
    public void everyTestGivesAResultThatTheEngineReads() throws Exception {
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.DATABASES, "2");
        settings.set(Parameter.TABLES, "3");
        settings.set(Parameter.SQLITE_THREADS, "2");
        settings.set(Parameter.TRANSACTIONS, "30");
        for (Workload workload : new Workload[] {
            Workload.INSERT, Workload.UPDATE, Workload.DELETE}) {
            Engine.Outcome outcome = run(workload, new Stop());
            assertTrue(outcome.complaint, outcome.whole);
            JSONObject whole = new JSONObject(outcome.text);
            JSONObject result = whole.getJSONObject("result");
            JSONObject job = result.getJSONObject("job");
            assertEquals(PhoneSqlite.LIBRARY, job.getString("library"));
            assertEquals(30, job.getLong("transactions"));
            JSONObject run = result.getJSONArray("runs").getJSONObject(0);
            assertEquals("complete", run.getString("state"));
            assertEquals(60, run.getLong("operations"));
            long bytes = workload == Workload.DELETE ? 0 : 60 * 6 * 100;
            assertEquals(bytes, run.getLong("bytes"));
            JSONObject first = whole.getJSONObject("summary").getJSONArray("runs")
                    .getJSONObject(0);
            assertEquals(60, first.getJSONArray("latencies").getJSONObject(0).getLong("count"));
        }
    }

    @Test
    public void eachJournalModeIsReallySet() throws Exception {
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.TRANSACTIONS, "5");
        for (String mode : Parameter.JOURNAL.choices) {
            if (mode.equals("waldio")) {
                continue;
            }
            settings.set(Parameter.JOURNAL, mode);
            Engine.Outcome outcome = run(Workload.INSERT, new Stop());
            assertTrue(mode + ": " + outcome.complaint, outcome.whole);
            String told = new JSONObject(outcome.text).getJSONObject("result")
                    .getJSONObject("environment").getJSONObject("sqlite")
                    .getJSONArray("settings").getJSONArray(0).getString(1);
            assertEquals(mode, told);
        }
    }

    @Test
    public void moreKeysThanAnAppHasMemoryForAreRefusedWithWhatToDo() throws Exception {
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.TRANSACTIONS, "100000");
        settings.set(Parameter.STATEMENTS, "100");
        settings.set(Parameter.KEYS, "random");
        IOException error = assertThrows(IOException.class,
                () -> run(Workload.INSERT, new Stop()));
        assertTrue(error.getMessage(), error.getMessage().contains("Set fewer transactions"));
    }

    /** Each row once, whichever the order. */
    @Test
    public void randomKeysMeetEveryRow() throws Exception {
        new Settings(phone.app).set(Parameter.KEYS, "random");
        Engine.Outcome outcome = run(Workload.DELETE, new Stop());
        assertTrue(outcome.complaint, outcome.whole);
    }

    @Test
    public void aStoppedOneIsInterruptedAndKept() throws Exception {
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.TRANSACTIONS, "1000000");
        Stop stop = new Stop();
        Engine.Outcome outcome = new PhoneSqlite(phone.app, new Engine(phone.app)).bench(
                Workload.INSERT.arguments(settings), phone.directory(),
                progress -> {
                    if (progress.done > 0) {
                        stop.ask();
                    }
                }, stop);
        assertFalse(outcome.whole);
        JSONObject run = new JSONObject(outcome.text).getJSONObject("result")
                .getJSONArray("runs").getJSONObject(0);
        assertEquals("interrupted", run.getString("state"));
        assertTrue(run.getLong("operations") > 0);
    }

    @Test
    @Config(qualifiers = "de")
    public void whatItRefusesItSaysInThePersonsLanguage() {
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.TRANSACTIONS, "1000000");
        settings.set(Parameter.STATEMENTS, "10");
        settings.set(Parameter.KEYS, "random");
        IOException error = assertThrows(IOException.class,
                () -> run(Workload.INSERT, new Stop()));
        assertTrue(error.getMessage(), error.getMessage().contains("Stellen Sie weniger"));
    }

    /** A million rows are made before the first is deleted. */
    @Test
    public void itIsStoppedWhileItMakesReady() throws Exception {
        new Settings(phone.app).set(Parameter.TRANSACTIONS, "1000000");
        Stop stop = new Stop();
        File directory = phone.directory();
        List<Progress> told = new ArrayList<>();
        Engine.Outcome outcome = new PhoneSqlite(phone.app, new Engine(phone.app)).bench(
                Workload.DELETE.arguments(new Settings(phone.app)), directory,
                progress -> {
                    told.add(progress);
                    stop.ask();
                }, stop);
        assertEquals(1, told.size());
        assertFalse(told.get(0).measuring);
        assertTrue("" + told.get(0).done, told.get(0).done > 0 && told.get(0).done < 1);
        assertFalse(outcome.whole);
        assertEquals("", outcome.text);
        assertEquals(0, directory.list().length);
    }

    /** A stop while the engine is asked ends it with figures, which are not the phone's. */
    @Test
    public void theEnginesOwnFiguresAreNotThePhones() throws Exception {
        phone.engine(System.getProperty("iostep.engine") + " \"$@\"; exit 1");
        Engine.Outcome outcome = run(Workload.INSERT, new Stop());
        assertFalse(outcome.whole);
        assertEquals("", outcome.text);
    }

    @Test
    public void theEngineIsAskedWithOneRow() throws Exception {
        File asked = new File(phone.directory(), "asked");
        phone.engine("echo \"$@\" >>" + asked + "; exec " + System.getProperty("iostep.engine")
                + " \"$@\"");
        Engine.Outcome outcome = run(Workload.UPDATE, new Stop());
        assertTrue(outcome.complaint, outcome.whole);
        String first = Files.readAllLines(asked.toPath()).get(0);
        assertTrue(first, (first + " ").contains(" --rows=1 "));
        assertEquals(100, new JSONObject(outcome.text).getJSONObject("result")
                .getJSONObject("job").getLong("rows"));
    }

    @Test
    public void aRowThatAnAppHasNoMemoryForIsRefusedWithWhatToDo() throws Exception {
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.ROW, "17MiB");
        settings.set(Parameter.SQLITE_THREADS, "2");
        IOException error = assertThrows(IOException.class,
                () -> run(Workload.INSERT, new Stop()));
        assertTrue(error.getMessage(), error.getMessage().contains("Set a smaller row"));
    }

    /** Thrown on in a thread of its own, it would end the app with all that was measured. */
    @Test
    public void anErrorInAWorkerEndsTheRunWithTheReason() throws Exception {
        Error[] errors = {new OutOfMemoryError("made up"), new StackOverflowError("made up")};
        String[] reasons = {"too little memory", "Android’s SQLite failed: a statement: "
                + "java.lang.StackOverflowError: made up"};
        for (int at = 0; at < errors.length; at++) {
            Error error = errors[at];
            AtomicInteger asked = new AtomicInteger();
            Engine.Outcome outcome = run(Workload.INSERT, new Stop() {
                @Override
                public boolean isAsked() {
                    boolean worker = Thread.currentThread() instanceof PhoneWorker;
                    if (worker && asked.incrementAndGet() > 7) {
                        throw error;
                    }
                    return super.isAsked();
                }
            });
            assertFalse(outcome.whole);
            assertTrue(outcome.complaint, outcome.complaint.contains(reasons[at]));
            JSONObject run = new JSONObject(outcome.text).getJSONObject("result")
                    .getJSONArray("runs").getJSONObject(0);
            assertEquals("failed", run.getString("state"));
            assertEquals("what was measured until then is kept", 7, run.getLong("operations"));
            assertEquals(error.toString(), run.getJSONArray("failures").getJSONObject(0)
                    .getString("reason"));
        }
    }

    @Test
    public void pagesHaveTheSizeThatWasAskedFor() throws Exception {
        for (String journal : new String[] {"truncate", "wal"}) {
            Engine.Outcome outcome = new PhoneSqlite(phone.app, new Engine(phone.app)).bench(
                    Arrays.asList("sqlite", "--transactions=5", "--databases=2",
                            "--page-size=16384", "--journal=" + journal),
                    phone.directory(), progress -> {}, new Stop());
            assertTrue(outcome.complaint, outcome.whole);
            String settings = new JSONObject(outcome.text).getJSONObject("result")
                    .getJSONObject("environment").getJSONObject("sqlite")
                    .getJSONArray("settings").toString();
            assertTrue(settings, settings.contains("[\"page_size\",\"16384\"]"));
        }
    }
}
