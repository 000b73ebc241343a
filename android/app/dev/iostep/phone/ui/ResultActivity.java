package dev.iostep.phone.ui;

import android.app.Activity;
import android.app.AlertDialog;
import android.os.Bundle;
import android.view.View;
import android.widget.TextView;

import dev.iostep.phone.R;
import dev.iostep.phone.history.Export;
import dev.iostep.phone.history.Figures;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;

/** One run: its figures, its warnings, where it stands among others. */
public final class ResultActivity extends Activity {
    /** The extra with the run's number. */
    public static final String RUN = "run";

    private History history;
    private Run run;

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        history = History.of(this);
        run = history.run(getIntent().getLongExtra(RUN, 0));
        if (run == null) {
            finish();
            return;
        }
        setContentView(R.layout.result);
        text(R.id.result_test, Words.test(this, run));
        text(R.id.result_figure, Words.figure(this, run));
        TextView trouble = findViewById(R.id.result_trouble);
        trouble.setText(run.complaint);
        trouble.setVisibility(run.complaint == null ? View.GONE : View.VISIBLE);
        findViewById(R.id.result_share).setOnClickListener(view -> Export.share(this, run));
        findViewById(R.id.result_delete).setOnClickListener(view -> askDelete());
        show();
    }

    private void text(int view, String words) {
        this.<TextView>findViewById(view).setText(words);
    }

    /** Its name, its figure and its state are read aloud as one. */
    private void head(String runs) {
        text(R.id.result_runs, runs);
        findViewById(R.id.result_head).setContentDescription(
                Words.test(this, run) + ": " + Words.figure(this, run) + ", " + runs);
    }

    private void show() {
        String result = history.result(run.id);
        SecondsPlot plot = findViewById(R.id.result_plot);
        Sections sections = new Sections(this, findViewById(R.id.result_sections));
        if (result == null) {
            plot.setVisibility(View.GONE);
            head(Words.state(this, run));
            findViewById(R.id.result_share).setEnabled(false);
            return;
        }
        Figures figures = Figures.of(result);
        head(getResources().getQuantityString(R.plurals.runs, figures.runs(),
                Words.state(this, run), figures.runs()));
        plot.show(figures.perSecond());
        new ResultSections(this, history, run, figures).fill(sections);
        new UploadView(this, run, figures, findViewById(R.id.result_upload)).show();
    }

    private void askDelete() {
        new AlertDialog.Builder(this)
                .setMessage(R.string.delete_question)
                .setPositiveButton(R.string.delete, (dialog, which) -> {
                    history.delete(run.id);
                    finish();
                })
                .setNegativeButton(android.R.string.cancel, null)
                .show();
    }
}
