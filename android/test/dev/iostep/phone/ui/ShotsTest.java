package dev.iostep.phone.ui;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Activity;
import android.app.AlertDialog;
import android.content.DialogInterface;
import android.content.Intent;
import android.os.Build;
import android.os.Looper;
import android.text.Layout;
import android.view.View;
import android.view.ViewGroup;
import android.widget.Button;
import android.widget.CheckBox;
import android.widget.TextView;

import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;
import org.robolectric.annotation.GraphicsMode;
import org.robolectric.shadows.ShadowAlertDialog;

import java.util.Arrays;
import java.util.Collections;

import dev.iostep.phone.Phone;
import dev.iostep.phone.R;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.history.Uploads;
import dev.iostep.phone.measure.Conditions;
import dev.iostep.phone.measure.Engine;
import dev.iostep.phone.measure.Measuring;
import dev.iostep.phone.measure.PhoneSqlite;
import dev.iostep.phone.measure.Stop;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;

/** Every screen, drawn: nothing of it is cut off, too small to touch, or without a name. */
@RunWith(RobolectricTestRunner.class)
@GraphicsMode(GraphicsMode.Mode.NATIVE)
@Config(sdk = 35, qualifiers = "w360dp-h740dp-xhdpi")
public final class ShotsTest {
    @Rule public final Phone phone = new Phone();

    private History history;
    private long engineRun;
    private long phoneRun;
    private long failedRun;

    /** A history of two results, a failed and a killed one. */
    private void fill() throws Exception {
        history = History.of(phone.app);
        Engine engine = new Engine(phone.app);
        Conditions before = Conditions.now(phone.app);
        phone.heat(2);
        phone.battery(71, false);
        String around = Conditions.around(before, Conditions.now(phone.app)).toString();
        Engine.Outcome own = engine.bench(
                Arrays.asList("sqlite", "--time=4", "--repeat=2", "--journal=truncate"),
                phone.directory(), null, new Stop());
        engineRun = add("insert", "ENGINE", Run.COMPLETE, own.text, around, null);
        Engine.Outcome other = new PhoneSqlite(phone.app, engine).bench(
                Arrays.asList("sqlite", "--transactions=400", "--journal=truncate"),
                phone.directory(), progress -> {}, new Stop());
        phoneRun = add("insert", "PHONE", Run.COMPLETE, other.text, around, null);
        failedRun = add("rand-read", "ENGINE", Run.FAILED, null, around,
                "iostep: /storage/1234-ABCD: no room; make some");
        history.begin("seq-write", "ENGINE", Phone.INSIDE, "Phone 8", 0);
        history.findDied();
    }

    private long add(String test, String by, String state, String result, String around,
            String complaint) {
        long id = history.begin(test, by, Phone.INSIDE, "Phone 8", 0);
        history.end(id, state, result, around, complaint, 3_000_000);
        return id;
    }

    private void shoot(Activity activity, String name, String kind) throws Exception {
        shadowOf(Looper.getMainLooper()).idle();
        Screen.shoot(activity.getWindow().getDecorView(), name + "-" + kind);
        assertEquals(name + "-" + kind, Collections.emptyList(),
                Screen.faults(activity.findViewById(android.R.id.content)));
    }

    /** The question that was asked last. */
    private static AlertDialog question(String name, String kind) throws Exception {
        shadowOf(Looper.getMainLooper()).idle();
        AlertDialog question = ShadowAlertDialog.getLatestAlertDialog();
        assertTrue(name, question != null && question.isShowing());
        View root = question.getWindow().getDecorView();
        Screen.shoot(root, name + "-" + kind);
        assertEquals(name + "-" + kind, Collections.emptyList(), Screen.faults(root));
        return question;
    }

    /** Every question but that of the start; none is agreed to. */
    private void questions(MainActivity main, String kind) throws Exception {
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.SERVER, "http://127.0.0.1:1");
        new Uploads(phone.app).sent(failedRun, "http://127.0.0.1:1", "0a", "0b", "insert", "valid");
        main.findViewById(R.id.tab_setting).performClick();
        main.findViewById(R.id.take_back_all).performClick();
        question("question-take-back", kind).dismiss();
        main.findViewById(R.id.agree).performClick();
        Phone.await("what is sent", () -> ShadowAlertDialog.getLatestAlertDialog().isShowing());
        json(question("question-agree", kind)).dismiss();
        main.findViewById(R.id.tab_measure).performClick();
        main.findViewById(R.id.button_custom).performClick();
        question("question-custom", kind).dismiss();
        ResultActivity result = result(engineRun);
        result.findViewById(R.id.result_delete).performClick();
        question("question-delete", kind).dismiss();
        for (View view : Screen.views(result.findViewById(R.id.result_upload))) {
            if (view instanceof Button && ((Button) view).getText().toString()
                    .equals(result.getString(R.string.show_sent))) {
                view.performClick();
            }
        }
        Phone.await("what is sent", () -> ShadowAlertDialog.getLatestAlertDialog().isShowing());
        json(question("shown-sent", kind)).dismiss();
    }

    /** Nothing of what is sent is mirrored, whichever the language. */
    private static AlertDialog json(AlertDialog shown) {
        Layout lines = shown.<TextView>findViewById(android.R.id.message).getLayout();
        assertTrue(lines.getText().toString(), lines.getText().toString().contains("\n{\n")
                || lines.getText().toString().startsWith("{\n"));
        for (int line = 0; line < lines.getLineCount(); line++) {
            assertEquals("line " + line, Layout.DIR_LEFT_TO_RIGHT,
                    lines.getParagraphDirection(line));
        }
        return shown;
    }

    private void everyScreen(String kind) throws Exception {
        MainActivity main = Robolectric.buildActivity(MainActivity.class).setup().get();
        shoot(main, "measure", kind);
        busy(main, kind);
        main.findViewById(R.id.tab_history).performClick();
        shoot(main, "history", kind);
        main.findViewById(R.id.tab_setting).performClick();
        shoot(main, "setting", kind);
        result(engineRun, "result-engine", kind);
        result(phoneRun, "result-phone", kind);
        result(failedRun, "result-failed", kind);
        CompareActivity compare = Robolectric.buildActivity(CompareActivity.class, new Intent()
                .putExtra(CompareActivity.FIRST, engineRun)
                .putExtra(CompareActivity.SECOND, phoneRun)).setup().get();
        Phone.await("the comparison", () -> compare.<ViewGroup>findViewById(
                R.id.compare_sections).getChildCount() > 0);
        shoot(compare, "compare", kind);
        questions(main, kind);
    }

    /** A test that is refused, the question before one that is not, and that one under way. */
    private void busy(MainActivity main, String kind) throws Exception {
        phone.battery(12, false);
        main.findViewById(R.id.button_all).performClick();
        shoot(main, "measure-refused", kind);
        phone.battery(71, false);
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.CAP, "1MiB");
        main.findViewById(R.id.tab_measure).performClick();
        main.findViewById(R.id.button_all).performClick();
        shoot(main, "measure-cap", kind);
        settings.set(Parameter.TRANSACTIONS, "1000000");
        settings.set(Parameter.CAP, "1024GiB");
        main.findViewById(R.id.button_sqlite).performClick();
        question("question", kind).getButton(DialogInterface.BUTTON_POSITIVE).performClick();
        Measuring measuring = Measuring.get();
        Phone.await("something measured", () -> measuring.secondsLeft() > 0);
        shoot(main, "measure-running", kind);
        measuring.stop();
        Phone.await("the end", () -> !measuring.isRunning());
        settings.reset();
    }

    private static ResultActivity result(long run) {
        return Robolectric.buildActivity(ResultActivity.class,
                new Intent().putExtra(ResultActivity.RUN, run)).setup().get();
    }

    private void result(long run, String name, String kind) throws Exception {
        shoot(result(run), name, kind);
    }

    @Test
    @Config(sdk = {26, 35})
    public void light() throws Exception {
        fill();
        everyScreen(Build.VERSION.SDK_INT == Build.VERSION_CODES.O ? "oldest" : "light");
    }

    @Test
    @Config(qualifiers = "+night")
    public void dark() throws Exception {
        fill();
        everyScreen("dark");
    }

    @Test
    @Config(qualifiers = "+de")
    public void german() throws Exception {
        fill();
        everyScreen("german");
    }

    @Test
    @Config(qualifiers = "+ar-ldrtl")
    public void rightToLeft() throws Exception {
        fill();
        everyScreen("rtl");
    }

    @Test
    @Config(qualifiers = "+de-w320dp-h569dp")
    public void largeTextOnASmallPhone() throws Exception {
        RuntimeEnvironment.setFontScale(2.0f);
        fill();
        everyScreen("large");
    }

    @Test
    @Config(qualifiers = "+w740dp-h360dp-land")
    public void turned() throws Exception {
        fill();
        everyScreen("turned");
    }

    /** A list that was filtered, two that were chosen. */
    @Test
    public void theHistoryFindsAndCompares() throws Exception {
        fill();
        MainActivity main = Robolectric.buildActivity(MainActivity.class).setup().get();
        main.findViewById(R.id.tab_history).performClick();
        shadowOf(Looper.getMainLooper()).idle();
        ViewGroup runs = main.findViewById(R.id.runs);
        assertEquals(4, runs.getChildCount());
        assertEquals(false, main.findViewById(R.id.compare).isEnabled());
        for (View view : Screen.views(runs)) {
            if (view instanceof CheckBox) {
                ((CheckBox) view).setChecked(true);
            }
        }
        main.findViewById(R.id.compare).performClick();
        Intent asked = shadowOf(main).getNextStartedActivity();
        assertEquals(engineRun, asked.getLongExtra(CompareActivity.FIRST, 0));
        assertEquals(phoneRun, asked.getLongExtra(CompareActivity.SECOND, 0));
        main.<android.widget.Spinner>findViewById(R.id.filter_state).setSelection(4);
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals(1, runs.getChildCount());
        main.findViewById(R.id.export_csv).performClick();
        assertNull("nothing is written while the screen waits",
                shadowOf(main).peekNextStartedActivity());
        Phone.await("the sheet", () -> shadowOf(main).peekNextStartedActivity() != null);
        Intent sheet = shadowOf(main).getNextStartedActivity();
        assertEquals(Intent.ACTION_CHOOSER, sheet.getAction());
    }

    @Test
    public void theLicenceOfWhatIsInsideIsShown() {
        MainActivity main = Robolectric.buildActivity(MainActivity.class).setup().get();
        main.findViewById(R.id.tab_setting).performClick();
        String shown = Screen.text(main.findViewById(android.R.id.content));
        assertTrue(shown, shown.contains("Permission is hereby granted, free of charge"));
    }

    /** A wrong value is told and not kept; a right one is. */
    @Test
    public void aSettingTakesWhatItCan() {
        MainActivity main = Robolectric.buildActivity(MainActivity.class).setup().get();
        main.findViewById(R.id.tab_setting).performClick();
        View row = main.findViewById(R.id.parameters).findViewWithTag(Parameter.WRITE_SIZE);
        android.widget.EditText field = row.findViewById(R.id.value);
        field.setText("7 apples");
        assertEquals("A size as 4KiB, 10MiB or 1GiB", field.getError().toString());
        Settings settings = new Settings(phone.app);
        assertEquals("10MiB", settings.text(Parameter.WRITE_SIZE));
        field.setText("20MiB");
        assertEquals(null, field.getError());
        assertEquals(20L << 20, settings.bytes(Parameter.WRITE_SIZE));
    }
}
