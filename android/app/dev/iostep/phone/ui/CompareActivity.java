package dev.iostep.phone.ui;

import android.app.Activity;
import android.os.Bundle;
import android.widget.TextView;

import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

import java.io.File;
import java.io.IOException;

import dev.iostep.phone.R;
import dev.iostep.phone.history.Export;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.measure.Engine;
import dev.iostep.phone.measure.Texts;

/** Two runs side by side, as {@code iostep compare} judges them. */
public final class CompareActivity extends Activity {
    public static final String FIRST = "first";
    public static final String SECOND = "second";

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        History history = History.of(this);
        Run first = history.run(getIntent().getLongExtra(FIRST, 0));
        Run second = history.run(getIntent().getLongExtra(SECOND, 0));
        if (first == null || second == null) {
            finish();
            return;
        }
        setContentView(R.layout.compare);
        name(R.id.compare_first, R.string.compare_a, first);
        name(R.id.compare_second, R.string.compare_b, second);
        Background.run(() -> compare(history, first, second), this::show);
    }

    private void name(int view, int letter, Run run) {
        this.<TextView>findViewById(view).setText(getString(letter, Words.test(this, run),
                Words.state(this, run)));
    }

    private Engine.Outcome compare(History history, Run first, Run second) {
        File a = new File(getCacheDir(), "a.json");
        File b = new File(getCacheDir(), "b.json");
        try {
            Texts.write(a, Export.result(history, first));
            Texts.write(b, Export.result(history, second));
            return new Engine(this).compare(a, b);
        } catch (IOException error) {
            return new Engine.Outcome("", error.getMessage(), false);
        } finally {
            a.delete();
            b.delete();
        }
    }

    private void show(Engine.Outcome outcome) {
        if (isDestroyed()) {
            return;
        }
        Sections sections = new Sections(this, findViewById(R.id.compare_sections));
        try {
            fill(sections, new JSONObject(outcome.text));
        } catch (JSONException none) {
            // The engine's own words say why two runs are not to be compared.
            sections.warning(outcome.complaint.isEmpty()
                    ? getString(R.string.failed_silently) : outcome.complaint);
        }
    }

    private void fill(Sections sections, JSONObject comparison) throws JSONException {
        if (!comparison.isNull("different_disks")) {
            sections.warning(getString(R.string.different_disks));
        }
        JSONArray rows = comparison.getJSONArray("rows");
        sections.quiet(getString(R.string.verdict_words));
        // A line for each is read in any size of text, which a table of five columns is not.
        for (int at = 0; at < rows.length(); at++) {
            JSONObject row = rows.getJSONObject(at);
            String ratio = row.isNull("ratio")
                    ? "–" : Words.number(this, row.getDouble("ratio"));
            sections.value(Words.measure(this, row.getString("measure")),
                    getString(R.string.compare_row, value(row, "first"), value(row, "second"),
                            ratio, verdict(row)));
        }
    }

    private String value(JSONObject row, String which) throws JSONException {
        if (row.isNull(which)) {
            return "–";
        }
        double value = row.getDouble(which);
        switch (row.getString("unit")) {
            case "nanoseconds":
                return Words.duration(this, value);
            case "bytes":
                return Words.bytes(this, Math.round(value));
            case "bytes_per_second":
                return getString(R.string.per_second, Words.bytes(this, Math.round(value)));
            default:
                return Words.number(this, value);
        }
    }

    private String verdict(JSONObject row) throws JSONException {
        JSONObject verdict = row.getJSONObject("verdict");
        switch (verdict.getString("kind")) {
            case "better":
                return getString(R.string.verdict_better);
            case "worse":
                return getString(R.string.verdict_worse);
            case "too_few_runs":
                return getString(R.string.verdict_too_few, verdict.optInt("needed"));
            case "no_difference":
                return getString(R.string.verdict_same);
            default:
                return getString(R.string.verdict_missing);
        }
    }
}
