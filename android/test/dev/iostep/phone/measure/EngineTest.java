package dev.iostep.phone.measure;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import org.json.JSONArray;
import org.json.JSONObject;
import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import dev.iostep.phone.Phone;
import dev.iostep.phone.settings.Settings;

@RunWith(RobolectricTestRunner.class)
@Config(sdk = 35)
public final class EngineTest {
    @Rule public final Phone phone = new Phone();

    /** The defaults stand in the engine's profile; here they are only repeated. */
    @Test
    public void itsTestsAreThoseOfTheProfile() throws Exception {
        File directory = phone.directory();
        phone.engineOfThisMachine();
        Process process = new ProcessBuilder(
                phone.app.getApplicationInfo().nativeLibraryDir + "/libiostep.so", "bench",
                "--profile", "mobibench", "--json", directory.getPath())
                .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        JSONArray profile = new JSONArray(new String(
                process.getInputStream().readAllBytes(), StandardCharsets.UTF_8));
        Settings settings = new Settings(phone.app);
        List<Step> steps = Button.ALL.plan(settings, new WriteEstimate(workload -> 0));
        steps.removeIf(step -> step.by == Step.By.PHONE);
        assertEquals(profile.length(), steps.size());
        for (int at = 0; at < steps.size(); at++) {
            JSONObject theirs = profile.getJSONObject(at);
            Step step = steps.get(at);
            assertEquals(theirs.getString("test"),
                    step.workload.key());
            Engine.Outcome outcome = new Engine(phone.app)
                    .bench(step.arguments, directory, null, new Stop());
            assertTrue(outcome.complaint, outcome.whole);
            JSONObject ours = new JSONObject(outcome.text).getJSONObject("result");
            assertEquals(theirs.getJSONObject("result").getJSONObject("job").toString(),
                    ours.getJSONObject("job").toString());
        }
    }

    @Test
    public void itTellsHowFarItIsAndWhatItMeasured() throws Exception {
        List<Progress> told = new ArrayList<>();
        Engine.Outcome outcome = new Engine(phone.app).bench(
                Arrays.asList("sqlite", "--time=1", "--repeat=2"), phone.directory(), told::add,
                new Stop());
        assertTrue(outcome.complaint, outcome.whole);
        JSONObject whole = new JSONObject(outcome.text);
        assertEquals(2, whole.getJSONObject("result").getJSONArray("runs").length());
        Progress last = told.get(told.size() - 1);
        assertEquals(2, last.run);
        assertEquals(2, last.runs);
        assertTrue(last.measuring);
        assertTrue("" + last.done, last.done > 0.5);
    }

    @Test
    public void whatWasMeasuredUntilItIsStoppedIsThere() throws Exception {
        Stop stop = new Stop();
        Engine.Outcome outcome = new Engine(phone.app).bench(
                Arrays.asList("sqlite", "--time=600"), phone.directory(),
                progress -> {
                    if (progress.measuring && progress.leftNs > 0) {
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
    public void whatItRefusesItSaysInItsOwnWords() throws Exception {
        Engine.Outcome outcome = new Engine(phone.app).bench(
                Arrays.asList("file", "--sync=msync"), phone.directory(), null, new Stop());
        assertFalse(outcome.whole);
        assertTrue(outcome.complaint, outcome.complaint.contains("--transfer mmap"));
    }
}
