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
import android.os.Looper;
import android.view.View;
import android.widget.Button;
import android.widget.EditText;
import android.widget.Switch;
import android.widget.TextView;

import org.json.JSONArray;
import org.json.JSONObject;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowAlertDialog;

import java.util.Arrays;

import dev.iostep.phone.Phone;
import dev.iostep.phone.R;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.history.Upload;
import dev.iostep.phone.history.Uploads;
import dev.iostep.phone.measure.Engine;
import dev.iostep.phone.measure.Stop;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;
import dev.iostep.phone.upload.Sender;
import dev.iostep.phone.upload.Server;

/** Agreeing, sending, looking at the ranking and taking back, by what is on the screens. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = {26, 35}, qualifiers = "w360dp-h740dp-xhdpi")
public final class UploadScreenTest {
    @Rule public final Phone phone = new Phone();
    @Rule public final Server server = new Server();

    private final Settings settings = new Settings(
            org.robolectric.RuntimeEnvironment.getApplication());

    private long measure() throws Exception {
        Engine.Outcome outcome = new Engine(phone.app).bench(
                Arrays.asList("sqlite", "--transactions=20"), phone.directory(), null, new Stop());
        History history = History.of(phone.app);
        long run = history.begin("insert", "ENGINE", Phone.INSIDE, "Phone 8", 0);
        history.end(run, Run.COMPLETE, outcome.text, "{\"warnings\":[]}", null, 0);
        return run;
    }

    private MainActivity setting() {
        MainActivity main = Robolectric.buildActivity(MainActivity.class).setup().get();
        main.findViewById(R.id.tab_setting).performClick();
        shadowOf(Looper.getMainLooper()).idle();
        return main;
    }

    private static void press(AlertDialog dialog, int button) {
        dialog.getButton(button).performClick();
        shadowOf(Looper.getMainLooper()).idle();
    }

    private static Button button(ResultActivity result, int words) {
        for (View view : Screen.views(result.findViewById(R.id.result_upload))) {
            if (view instanceof Button && ((Button) view).getText().toString()
                    .equals(result.getString(words))) {
                return (Button) view;
            }
        }
        return null;
    }

    private ResultActivity result(long run) {
        ResultActivity result = Robolectric.buildActivity(ResultActivity.class,
                new Intent().putExtra(ResultActivity.RUN, run)).setup().get();
        shadowOf(Looper.getMainLooper()).idle();
        return result;
    }

    private static String words(ResultActivity result) {
        return Screen.text(result.findViewById(R.id.result_upload));
    }

    @Test
    public void uploadsAreOffUntilWhatIsSentWasSeen() throws Exception {
        long run = measure();
        MainActivity main = setting();
        Switch agree = main.findViewById(R.id.agree);
        assertFalse("without a server there is nothing to agree to", agree.isEnabled());
        EditText address = main.findViewById(R.id.server_row).findViewById(R.id.value);
        address.setText("ftp://x");
        assertNotNull(address.getError());
        address.setText(server.url);
        assertTrue(agree.isEnabled());

        agree.performClick();
        assertFalse("not before it was seen", agree.isChecked() || settings.mayUpload());
        Phone.await("the question", () -> ShadowAlertDialog.getLatestAlertDialog() != null);
        AlertDialog question = ShadowAlertDialog.getLatestAlertDialog();
        String shown = shadowOf(question).getMessage().toString();
        String sent = new Sender(phone.app).toSend(History.of(phone.app).run(run));
        assertTrue("exactly what is sent", shown.endsWith(sent));
        assertTrue(shown, shown.contains(server.url) && shown.contains("can read along"));
        press(question, DialogInterface.BUTTON_NEGATIVE);
        assertFalse(agree.isChecked() || settings.mayUpload());

        agree.performClick();
        Phone.await("the question again",
                () -> ShadowAlertDialog.getLatestAlertDialog() != question);
        press(ShadowAlertDialog.getLatestAlertDialog(), DialogInterface.BUTTON_POSITIVE);
        assertTrue(agree.isChecked() && settings.mayUpload());
        agree.performClick();
        assertFalse(agree.isChecked() || settings.mayUpload());
    }

    @Test
    public void aResultIsSentFromItsScreenAndTakenBackFromThere() throws Exception {
        long run = measure();
        ResultActivity off = result(run);
        assertTrue(words(off), words(off).contains("you did not agree"));
        assertNull(button(off, R.string.send));

        settings.set(Parameter.SERVER, server.url);
        settings.agree(true);
        ResultActivity on = result(run);
        button(on, R.string.send).performClick();
        assertTrue(words(on), words(on).contains("waits for a network"));
        assertTrue(new Sender(phone.app).sendWaiting());

        ResultActivity sent = result(run);
        assertTrue(words(sent), words(sent).contains("It was sent"));
        Phone.await("the ranking", () -> words(sent).contains("ranking"));
        button(sent, R.string.take_back).performClick();
        Phone.await("the end of it", () -> words(sent).contains("taken back"));
        assertEquals(Upload.TAKEN_BACK, new Uploads(phone.app).of(run).state);
    }

    @Test
    public void theRankingOfTheModelIsShown() throws Exception {
        settings.set(Parameter.SERVER, server.url);
        settings.agree(true);
        long run = measure();
        JSONObject whole = new JSONObject(History.of(phone.app).result(run));
        JSONObject result = whole.getJSONObject("result");
        result.put("warnings", new JSONArray());
        JSONObject environment = result.getJSONObject("environment");
        environment.put("device", JSONObject.NULL);
        environment.put("android", new JSONObject().put("manufacturer", "ACME")
                .put("model", "Phone 8").put("release", "14").put("brand", JSONObject.NULL)
                .put("device", JSONObject.NULL).put("fingerprint", JSONObject.NULL));
        result.getJSONArray("runs").put(0, new dev.iostep.phone.upload.SteadyRun(6, 50).json());
        result.getJSONObject("job").put("transactions", 6 * 50);
        whole.getJSONObject("summary").put("estimates", new JSONArray());
        History.of(phone.app).end(run, Run.COMPLETE, whole.toString(), "{\"warnings\":[]}", null, 0);
        new Uploads(phone.app).add(run, server.url);
        assertTrue(new Sender(phone.app).sendWaiting());
        ResultActivity shown = result(run);
        Phone.await("the ranking", () -> words(shown).contains("This model at the server"));
        assertTrue(words(shown), words(shown).contains(
                "No rank before five installations; installations: 1; best 50 TPS"));
    }

    @Test
    public void allThatWasSentIsTakenBackFromSetting() throws Exception {
        settings.set(Parameter.SERVER, server.url);
        settings.agree(true);
        long run = measure();
        new Uploads(phone.app).add(run, server.url);
        assertTrue(new Sender(phone.app).sendWaiting());
        MainActivity main = setting();
        TextView state = main.findViewById(R.id.upload_state);
        assertTrue(state.getText().toString(), state.getText().toString().startsWith("1 sent"));
        main.findViewById(R.id.take_back_all).performClick();
        press(ShadowAlertDialog.getLatestAlertDialog(), DialogInterface.BUTTON_POSITIVE);
        Phone.await("the end of it", () -> state.getText().toString().startsWith("0 sent"));
        assertEquals(Upload.TAKEN_BACK, new Uploads(phone.app).of(run).state);
    }

    @Test
    public void whatWaitsForAServerThatIsSetNoMoreIsNotSaidToWait() throws Exception {
        settings.set(Parameter.SERVER, server.url);
        settings.agree(true);
        long run = measure();
        new Uploads(phone.app).add(run, server.url);
        TextView state = setting().findViewById(R.id.upload_state);
        assertTrue(state.getText().toString(), state.getText().toString().contains("1 wait"));
        settings.set(Parameter.SERVER, "http://127.0.0.1:1");
        assertTrue(words(result(run)), words(result(run)).contains("you did not agree"));
        state = setting().findViewById(R.id.upload_state);
        assertTrue(state.getText().toString(), state.getText().toString().contains("0 wait"));
    }
}
