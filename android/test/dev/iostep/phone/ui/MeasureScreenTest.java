package dev.iostep.phone.ui;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.AlertDialog;
import android.app.Notification;
import android.app.NotificationManager;
import android.app.job.JobScheduler;
import android.content.ContextWrapper;
import android.content.DialogInterface;
import android.content.Intent;
import android.database.DatabaseUtils;
import android.database.sqlite.SQLiteDatabase;
import android.os.Environment;
import android.os.Looper;
import android.os.Process;
import android.os.storage.StorageManager;
import android.view.View;
import android.view.ViewGroup;
import android.widget.Spinner;
import android.widget.TextView;

import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.android.controller.ActivityController;
import org.robolectric.android.controller.ServiceController;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowAlertDialog;
import org.robolectric.shadows.ShadowEnvironment;
import org.robolectric.shadows.StorageVolumeBuilder;
import org.robolectric.util.ReflectionHelpers;

import java.io.File;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

import dev.iostep.phone.Phone;
import dev.iostep.phone.PhoneApp;
import dev.iostep.phone.R;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.history.Uploads;
import dev.iostep.phone.measure.MeasureService;
import dev.iostep.phone.measure.Measuring;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;
import dev.iostep.phone.upload.UploadJob;

@RunWith(RobolectricTestRunner.class)
@Config(sdk = {26, 35}, qualifiers = "w360dp-h740dp-xhdpi")
public final class MeasureScreenTest {
    @Rule public final Phone phone = new Phone();

    private final Measuring measuring = Measuring.get();

    private ActivityController<MainActivity> open() {
        return Robolectric.buildActivity(MainActivity.class).setup();
    }

    /** Tests that do not end by themselves within a test, and a cap that lets them. */
    private void endless() {
        Settings settings = new Settings(phone.app);
        assertTrue(settings.set(Parameter.TRANSACTIONS, "1000000"));
        assertTrue(settings.set(Parameter.CAP, "1024GiB"));
    }

    private static void press(MainActivity activity, int view) {
        View button = activity.findViewById(view);
        assertTrue(button.isEnabled() && button.isShown());
        button.performClick();
        shadowOf(Looper.getMainLooper()).idle();
    }

    private static AlertDialog dialog() {
        AlertDialog dialog = ShadowAlertDialog.getLatestAlertDialog();
        assertNotNull("no question was asked", dialog);
        return dialog;
    }

    private static void agree() {
        dialog().getButton(DialogInterface.BUTTON_POSITIVE).performClick();
        shadowOf(Looper.getMainLooper()).idle();
    }

    private static String words(MainActivity activity, int view) {
        return activity.<TextView>findViewById(view).getText().toString();
    }

    /** Starts the service that the screen asked for, as Android does. */
    private ServiceController<MeasureService> service() {
        Intent asked = shadowOf(phone.app).getNextStartedService();
        assertNotNull("no service was started", asked);
        return Robolectric.buildService(MeasureService.class, asked).create().startCommand(0, 1);
    }

    @Test
    public void theSqliteButtonMeasuresBothEnginesAndShowsThemSideBySide() {
        MainActivity activity = open().get();
        press(activity, R.id.button_sqlite);
        String question = shadowOf(dialog()).getMessage().toString();
        assertTrue(question, question.contains("This will write about"));
        assertTrue(question, question.contains("to: Internal storage"));
        assertFalse("nothing runs before it is agreed to", measuring.isRunning());
        agree();
        assertTrue(measuring.isRunning());
        assertFalse(activity.findViewById(R.id.button_all).isEnabled());
        Phone.await("the end of the tests", () -> !measuring.isRunning());
        ViewGroup results = activity.findViewById(R.id.results);
        assertEquals(measuring.trouble(), 6, results.getChildCount());
        String first = Screen.text(results.getChildAt(0));
        String second = Screen.text(results.getChildAt(1));
        assertTrue(first, first.contains("SQLite insert, iostep’s SQLite"));
        assertTrue(second, second.contains("SQLite insert, the phone’s SQLite"));
        for (int at = 0; at < 6; at++) {
            String row = Screen.text(results.getChildAt(at));
            assertTrue(row, row.contains("TPS") && row.contains("complete"));
        }
        assertTrue(History.of(phone.app).written() > 0);
        assertTrue(activity.findViewById(R.id.button_all).isEnabled());

        results.getChildAt(1).performClick();
        Intent opened = shadowOf(activity).getNextStartedActivity();
        ResultActivity result = Robolectric.buildActivity(ResultActivity.class, opened).setup()
                .get();
        String shown = Screen.text(result.findViewById(android.R.id.content));
        for (String part : new String[] {"TPS", "Latency", "transaction", "p99.9",
            "Context switches", "Battery", "80%, charging", "SQLite 3.", "This phone, 1 run"}) {
            assertTrue(part + " is not in: " + shown, shown.contains(part));
        }
    }

    @Test
    public void aStoppedRunKeepsWhatItMeasuredAndNothingFollows() {
        endless();
        MainActivity activity = open().get();
        press(activity, R.id.button_sqlite);
        agree();
        Phone.await("something measured", () -> measuring.progressNow() != null
                && measuring.progressNow().measuring && measuring.progressNow().done > 0);
        String progress = words(activity, R.id.progress_text);
        assertTrue(progress, progress.contains("Test 1 of 6"));
        press(activity, R.id.stop);
        Phone.await("the end", () -> !measuring.isRunning());
        List<Run> runs = History.of(phone.app).runs(null, null);
        assertEquals(1, runs.size());
        assertEquals(Run.PARTIAL, runs.get(0).state);
        assertTrue(runs.get(0).rate > 0);
        assertTrue(words(activity, R.id.trouble).contains("It was stopped"));
        long written = History.of(phone.app).written();
        assertTrue("what was not done was not written: " + written,
                written > 0 && written < 1L << 30);
    }

    @Test
    public void turningThePhoneLeavesTheRunAlone() {
        endless();
        ActivityController<MainActivity> screen = open();
        press(screen.get(), R.id.button_sqlite);
        agree();
        screen.recreate();
        MainActivity turned = screen.get();
        assertTrue(measuring.isRunning());
        assertEquals(View.VISIBLE, turned.findViewById(R.id.running).getVisibility());
        screen.pause().stop();
        assertTrue("put away, it goes on", measuring.isRunning());
        screen.restart().start().resume();
        press(turned, R.id.stop);
        Phone.await("the end", () -> !measuring.isRunning());
    }

    @Test
    public void theServiceShowsARunAndGoesWithIt() {
        endless();
        MainActivity activity = open().get();
        press(activity, R.id.button_sqlite);
        agree();
        ServiceController<MeasureService> service = service();
        Notification notification = shadowOf(service.get()).getLastForegroundNotification();
        assertEquals("Measuring",
                notification.extras.getString(Notification.EXTRA_TITLE));
        assertEquals(1, notification.actions.length);
        assertTrue(shadowOf(phone.app.getSystemService(NotificationManager.class)).size() > 0);
        // What the button of the notification does.
        service.withIntent(shadowOf(notification.actions[0].actionIntent).getSavedIntent())
                .startCommand(0, 2);
        Phone.await("the end", () -> !measuring.isRunning());
        assertTrue(shadowOf(service.get()).isStoppedBySelf());
        assertTrue(shadowOf(service.get()).isForegroundStopped());
        service.destroy();
    }

    @Test
    public void aLowBatteryIsToldInsteadOfAQuestion() {
        phone.battery(15, false);
        MainActivity activity = open().get();
        press(activity, R.id.button_all);
        assertNull(ShadowAlertDialog.getLatestAlertDialog());
        assertTrue(words(activity, R.id.trouble).contains("The battery has 15 %"));
        assertFalse(measuring.isRunning());
    }

    @Test
    public void anEngineThatIsKilledIsAFailedRunWithAReason() throws Exception {
        phone.engine("kill -9 $$");
        MainActivity activity = open().get();
        press(activity, R.id.button_file);
        agree();
        Phone.await("the end", () -> !measuring.isRunning());
        Run run = History.of(phone.app).runs(null, null).get(0);
        assertEquals(Run.FAILED, run.state);
        assertTrue(words(activity, R.id.trouble).contains("The engine ended without a word"));
        assertEquals("what could not be measured ends it", 1,
                History.of(phone.app).runs(null, null).size());
    }

    @Test
    public void anEngineThatIsNotThereIsAFailedRunToo() throws Exception {
        phone.app.getApplicationInfo().nativeLibraryDir = "/nowhere";
        MainActivity activity = open().get();
        press(activity, R.id.button_file);
        agree();
        Phone.await("the end", () -> !measuring.isRunning());
        assertEquals(Run.FAILED, History.of(phone.app).runs(null, null).get(0).state);
        assertTrue(words(activity, R.id.trouble).contains("/nowhere/libiostep.so"));
    }

    /** As on a storage that fills up meanwhile. */
    @Test
    public void whatTheEngineComplainsOfIsShown() throws Exception {
        phone.engine("echo 'iostep: /data: no room; make some' >&2; exit 1");
        MainActivity activity = open().get();
        press(activity, R.id.button_file);
        agree();
        Phone.await("the end", () -> !measuring.isRunning());
        assertTrue(words(activity, R.id.trouble).contains("no room; make some"));
    }

    @Test
    public void aCardThatIsTakenOutMeanwhileIsTold() throws Exception {
        phone.engine("rm -rf " + phone.app.getFilesDir() + "/bench\nexit 1");
        MainActivity activity = open().get();
        press(activity, R.id.button_file);
        agree();
        Phone.await("the end", () -> !measuring.isRunning());
        assertTrue(words(activity, R.id.trouble).contains("Insert the card again"));
        assertEquals(Run.FAILED, History.of(phone.app).runs(null, null).get(0).state);
    }

    @Test
    public void theCustomButtonRunsWhatWasChosen() {
        MainActivity activity = open().get();
        press(activity, R.id.button_custom);
        shadowOf(dialog()).clickOnItem(4);
        agree();
        agree();
        Phone.await("the end", () -> !measuring.isRunning());
        List<Run> runs = History.of(phone.app).runs(null, null);
        assertEquals(2, runs.size());
        assertEquals("insert", runs.get(0).test);
        assertEquals(Run.COMPLETE, runs.get(0).state);
    }

    @Test
    public void aRunThatDiedWithItsProcessIsTold() {
        History.of(phone.app).begin("insert", "ENGINE", Phone.INSIDE, "Phone 8", 0);
        ((PhoneApp) phone.app).onCreate();
        MainActivity activity = open().get();
        assertTrue(words(activity, R.id.trouble).contains("1 test was under way"));
        assertEquals(Run.DIED, History.of(phone.app).runs(null, null).get(0).state);
    }

    /** Also after the process in which it was found. */
    @Test
    public void aHistoryThatWasDamagedIsTold() throws Exception {
        History.of(phone.app).close();
        Files.write(phone.app.getDatabasePath("history.db").toPath(), new byte[] {'x', 'y'});
        ((PhoneApp) phone.app).onCreate();
        MainActivity activity = open().get();
        assertTrue(words(activity, R.id.trouble).contains("is kept as damaged-1-history.db"));
        assertTrue("and when the phone was turned", words(open().get(), R.id.trouble)
                .contains("is kept as damaged-1-history.db"));
    }

    /** Sending would be measured along: it waits for the end of all tests. */
    @Test
    public void nothingIsSentWhileSomethingIsMeasured() throws Exception {
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.VENDOR, "own");
        settings.set(Parameter.SERVER, "http://127.0.0.1:1");
        settings.agree(true);
        File second = new File(phone.directory(), "second");
        phone.engine("if [ -e " + second + " ]; then exec sleep 600; fi; touch " + second
                + "; exec " + System.getProperty("iostep.engine") + " \"$@\"");
        press(open().get(), R.id.button_sqlite);
        agree();
        JobScheduler scheduler = phone.app.getSystemService(JobScheduler.class);
        Phone.await("the second test", () -> measuring.number() == 2);
        assertEquals(1, new Uploads(phone.app).waiting("http://127.0.0.1:1").size());
        assertNull(scheduler.getPendingJob(1));
        assertFalse(Robolectric.setupService(UploadJob.class).onStartJob(null));
        measuring.stop();
        Phone.await("the end", () -> !measuring.isRunning());
        Phone.await("the job", () -> scheduler.getPendingJob(1) != null);
    }

    /** A second card is another storage, whichever slot it is in. */
    @Test
    public void aRunOnACardIsKeptUnderItsFilesystem() throws Exception {
        String[] uuids = {null, "1234-ABCD", "5678-ABCD"};
        File[] directories = new File[uuids.length];
        for (int at = 0; at < uuids.length; at++) {
            directories[at] = phone.directory();
            ShadowEnvironment.setExternalStorageState(directories[at],
                    Environment.MEDIA_MOUNTED);
            shadowOf(phone.app.getSystemService(StorageManager.class)).addStorageVolume(
                    new StorageVolumeBuilder("volume" + at, directories[at], "A volume",
                            Process.myUserHandle(), Environment.MEDIA_MOUNTED)
                            .setFsUuid(uuids[at]).build());
        }
        File asked = new File(phone.directory(), "asked");
        phone.engine("echo \"$@\" >" + asked + "; exec " + System.getProperty("iostep.engine")
                + " \"$@\"");
        new Settings(phone.app).set(Parameter.VENDOR, "own");
        new Settings(phone.app).setCustom(Collections.singleton("insert"));
        ActivityController<MainActivity> screen = Robolectric.buildActivity(MainActivity.class);
        MainActivity activity = screen.get();
        // Robolectric has one external directory, whatever was added.
        ReflectionHelpers.setField(ContextWrapper.class, activity, "mBase",
                new ContextWrapper(activity.getBaseContext()) {
                    @Override
                    public File[] getExternalFilesDirs(String type) {
                        return directories;
                    }
                });
        screen.setup();
        Spinner storage = activity.findViewById(R.id.storage);
        List<String> offered = new ArrayList<>();
        for (int at = 0; at < storage.getCount(); at++) {
            offered.add(storage.getItemAtPosition(at).toString());
        }
        assertEquals(Arrays.asList("Internal storage", "Shared storage", "Card 1", "Card 2"),
                offered);
        for (int card = 1; card <= 2; card++) {
            storage.setSelection(1 + card);
            shadowOf(Looper.getMainLooper()).idle();
            press(activity, R.id.button_custom);
            agree();
            String question = shadowOf(dialog()).getMessage().toString();
            assertTrue(question, question.contains("to: Card " + card));
            agree();
            Phone.await("the end", () -> !measuring.isRunning());
            Run run = History.of(phone.app).runs(null, null).get(0);
            assertEquals(measuring.trouble(), Run.COMPLETE, run.state);
            assertEquals(uuids[card], run.volume);
            assertEquals("another card's runs are not its", 1,
                    History.of(phone.app).rates(run).size());
            String said = String.join("\n", Files.readAllLines(asked.toPath()));
            assertTrue(said, said.endsWith(" -- " + directories[card] + "/bench"));
        }
    }

    @Test
    public void halfAResultIsNone() throws Exception {
        phone.engine("printf '{\"result\":{\"warn'; exit 1");
        MainActivity activity = open().get();
        press(activity, R.id.button_file);
        agree();
        Phone.await("the end", () -> !measuring.isRunning());
        Run run = History.of(phone.app).runs(null, null).get(0);
        assertEquals(Run.FAILED, run.state);
        assertNull(History.of(phone.app).result(run.id));
        assertTrue(words(activity, R.id.trouble).contains("The engine ended without a word"));
    }

    /** A test that waits with its work until it is let. */
    private File waiting() throws Exception {
        File let = new File(phone.directory(), "let");
        phone.engine("while [ ! -e " + let + " ]; do sleep 0.05; done; exec "
                + System.getProperty("iostep.engine") + " \"$@\"");
        return let;
    }

    @Test
    public void aBatteryThatRunsLowEndsItAfterTheTestUnderWay() throws Exception {
        File let = waiting();
        MainActivity activity = open().get();
        press(activity, R.id.button_sqlite);
        agree();
        phone.battery(15, false);
        assertTrue(let.createNewFile());
        Phone.await("the end", () -> !measuring.isRunning());
        assertTrue(words(activity, R.id.trouble).contains("The battery has 15 %"));
        List<Run> runs = History.of(phone.app).runs(null, null);
        assertEquals(1, runs.size());
        assertEquals(Run.COMPLETE, runs.get(0).state);
    }

    @Test
    public void aQuestionThatStoodForHoursIsNoLeaveToBegin() {
        MainActivity activity = open().get();
        press(activity, R.id.button_all);
        phone.battery(15, false);
        agree();
        assertFalse(measuring.isRunning());
        assertTrue(words(activity, R.id.trouble).contains("The battery has 15 %"));
    }

    @Test
    public void aHistoryWithoutRoomIsToldAndTheResultComesLater() throws Exception {
        File let = waiting();
        MainActivity activity = open().get();
        press(activity, R.id.button_sqlite);
        agree();
        SQLiteDatabase database = History.of(phone.app).getWritableDatabase();
        Phone.await("the run", () -> DatabaseUtils.queryNumEntries(database, "run") == 1);
        database.setMaximumSize(1);
        assertTrue(let.createNewFile());
        Phone.await("the end", () -> !measuring.isRunning());
        String trouble = words(activity, R.id.trouble);
        assertTrue(trouble, trouble.contains("The history cannot be written"));
        database.setMaximumSize(1L << 30);
        ((PhoneApp) phone.app).onCreate();
        Run run = History.of(phone.app).runs(null, null).get(0);
        assertEquals(Run.COMPLETE, run.state);
        assertTrue(run.rate > 0);
    }

    @Test
    public void anEngineThatPrintsSomethingElseIsTold() throws Exception {
        for (String printed : new String[] {"hello", ""}) {
            phone.engine("printf '" + printed + "'");
            MainActivity activity = open().get();
            press(activity, R.id.button_file);
            agree();
            Phone.await("the end", () -> !measuring.isRunning());
            assertEquals(Run.FAILED, History.of(phone.app).runs(null, null).get(0).state);
            String trouble = words(activity, R.id.trouble);
            assertTrue(trouble, trouble.contains(printed.isEmpty()
                    ? "The engine ended without a word" : "cannot be read: hello"));
        }
    }
}
