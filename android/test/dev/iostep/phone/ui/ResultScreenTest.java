package dev.iostep.phone.ui;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.AlertDialog;
import android.content.DialogInterface;
import android.content.Intent;
import android.net.Uri;
import android.os.Looper;
import android.os.ParcelFileDescriptor;
import android.view.ViewGroup;

import org.json.JSONObject;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.android.controller.ActivityController;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowAlertDialog;

import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

import dev.iostep.phone.Phone;
import dev.iostep.phone.R;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.history.SharedFile;
import dev.iostep.phone.measure.Engine;
import dev.iostep.phone.measure.Stop;

/** One run: sharing and deleting it, and what TalkBack reads of it. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = {26, 35}, qualifiers = "w360dp-h740dp-xhdpi")
public final class ResultScreenTest {
    private static final String CONDITIONS = "{\"warnings\":[{\"kind\":\"hot\",\"status\":3}],"
            + "\"before\":{\"battery_percent\":80,\"charging\":true,\"thermal_status\":1},"
            + "\"after\":{\"battery_percent\":71,\"charging\":false,\"thermal_status\":null}}";

    @Rule public final Phone phone = new Phone();

    private History history() {
        return History.of(phone.app);
    }

    private long add(String state, String result) {
        long run = history().begin("insert", "ENGINE", Phone.INSIDE, "Phone 8", 0);
        history().end(run, state, result, CONDITIONS, result == null ? "no room" : null, 0);
        return run;
    }

    private String measured() throws Exception {
        Engine.Outcome outcome = new Engine(phone.app).bench(
                Arrays.asList("sqlite", "--transactions=20"), phone.directory(), null, new Stop());
        assertTrue(outcome.complaint, outcome.whole);
        return outcome.text;
    }

    private static ResultActivity open(Intent intent) {
        return Robolectric.buildActivity(ResultActivity.class, intent).setup().get();
    }

    private static ResultActivity open(long run) {
        return open(new Intent().putExtra(ResultActivity.RUN, run));
    }

    private static void answer(int button) {
        AlertDialog question = ShadowAlertDialog.getLatestAlertDialog();
        assertNotNull("no question was asked", question);
        question.getButton(button).performClick();
        shadowOf(Looper.getMainLooper()).idle();
    }

    /** Shares it, and reads the file as the app does that the person chooses. */
    private JSONObject shared(ResultActivity result) throws Exception {
        result.findViewById(R.id.result_share).performClick();
        Phone.await("the sheet", () -> shadowOf(result).peekNextStartedActivity() != null);
        Intent sheet = shadowOf(result).getNextStartedActivity();
        assertEquals(Intent.ACTION_CHOOSER, sheet.getAction());
        Intent send = sheet.getParcelableExtra(Intent.EXTRA_INTENT);
        assertEquals("application/json", send.getType());
        assertTrue((send.getFlags() & Intent.FLAG_GRANT_READ_URI_PERMISSION) != 0);
        Uri file = send.getParcelableExtra(Intent.EXTRA_STREAM);
        assertEquals(file, send.getClipData().getItemAt(0).getUri());
        SharedFile provider = Robolectric.setupContentProvider(SharedFile.class,
                file.getAuthority());
        try (InputStream in = new ParcelFileDescriptor.AutoCloseInputStream(
                provider.openFile(file, "r"))) {
            return new JSONObject(new String(in.readAllBytes(), StandardCharsets.UTF_8));
        }
    }

    @Test
    public void oneRunIsSharedWithItsWarnings() throws Exception {
        String text = measured();
        add(Run.COMPLETE, text);
        JSONObject whole = shared(open(add(Run.COMPLETE, text)));
        assertEquals(new JSONObject(text).getJSONObject("result").getJSONArray("runs").toString(),
                whole.getJSONObject("result").getJSONArray("runs").toString());
        assertTrue(whole.getJSONObject("result").getJSONArray("warnings").toString()
                .contains("\"hot\""));
    }

    @Test
    public void whatMeasuredNothingIsNotShared() {
        ResultActivity result = open(add(Run.FAILED, null));
        assertFalse(result.findViewById(R.id.result_share).isEnabled());
    }

    @Test
    public void oneRunIsDeletedOnceThatWasAsked() throws Exception {
        String text = measured();
        long other = add(Run.COMPLETE, text);
        long run = add(Run.COMPLETE, text);
        ResultActivity result = open(run);
        result.findViewById(R.id.result_delete).performClick();
        answer(DialogInterface.BUTTON_NEGATIVE);
        assertNotNull("not without a yes", history().run(run));
        assertFalse(result.isFinishing());
        result.findViewById(R.id.result_delete).performClick();
        answer(DialogInterface.BUTTON_POSITIVE);
        assertNull(history().run(run));
        assertNotNull(history().run(other));
        assertTrue("nothing is left to be shown", result.isFinishing());
        assertTrue(open(run).isFinishing());
    }

    /** The way from the history to a run, and back without it. */
    @Test
    public void aRunOfTheHistoryIsSharedAndDeletedByWayOfItsScreen() throws Exception {
        String text = measured();
        long older = add(Run.COMPLETE, text);
        long newer = add(Run.PARTIAL, text);
        ActivityController<MainActivity> screen =
                Robolectric.buildActivity(MainActivity.class).setup();
        MainActivity main = screen.get();
        main.findViewById(R.id.tab_history).performClick();
        shadowOf(Looper.getMainLooper()).idle();
        ViewGroup runs = main.findViewById(R.id.runs);
        assertEquals(2, runs.getChildCount());
        runs.getChildAt(0).performClick();
        Intent opened = shadowOf(main).getNextStartedActivity();
        assertEquals(newer, opened.getLongExtra(ResultActivity.RUN, 0));
        screen.pause().stop();
        ResultActivity result = open(opened);
        assertNotNull(shared(result));
        result.findViewById(R.id.result_delete).performClick();
        answer(DialogInterface.BUTTON_POSITIVE);
        screen.restart().start().resume();
        assertEquals(1, runs.getChildCount());
        assertEquals(older, history().runs(null, null).get(0).id);
    }

    private static void assertRead(List<String> read, String... parts) {
        for (String each : read) {
            boolean all = true;
            for (String part : parts) {
                all &= each.contains(part);
            }
            if (all) {
                return;
            }
        }
        throw new AssertionError(Arrays.toString(parts) + " are not read together: " + read);
    }

    /** Who does not see which column a number is in, or what is above it, is told with it. */
    @Test
    public void aFigureIsReadWithWhatItIs() throws Exception {
        ResultActivity result = open(add(Run.COMPLETE, measured()));
        List<String> read = Screen.read(result.findViewById(android.R.id.content));
        assertRead(read, "SQLite insert", "TPS", "complete");
        assertRead(read, "transaction: p50 ", ", p99.9 ", ", greatest ");
        assertRead(read, "This phone, 1 run: best ", ", median ", ", worst ");
        assertRead(read, "Battery: before 80%, charging, after 71%");
        assertRead(read, "Heat: before 1 of 6, after not known");
        for (String each : read) {
            assertFalse("a number alone: " + each, each.matches("[\\d.,]+( \\S+)?|–"));
        }
    }
}
