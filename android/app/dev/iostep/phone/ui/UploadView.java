package dev.iostep.phone.ui;

import android.app.AlertDialog;
import android.view.ViewGroup;
import android.widget.Button;

import org.json.JSONObject;

import java.io.IOException;

import dev.iostep.phone.R;
import dev.iostep.phone.history.Figures;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.history.Upload;
import dev.iostep.phone.history.Uploads;
import dev.iostep.phone.settings.Settings;
import dev.iostep.phone.upload.Sender;
import dev.iostep.phone.upload.UploadJob;

/** The part of a result's screen about the server: what is sent, what became of it, the ranking. */
final class UploadView {
    private final ResultActivity activity;
    private final Run run;
    private final Figures figures;
    private final ViewGroup place;

    UploadView(ResultActivity activity, Run run, Figures figures, ViewGroup place) {
        this.activity = activity;
        this.run = run;
        this.figures = figures;
        this.place = place;
    }

    void show() {
        Sections sections = new Sections(activity, place);
        Settings settings = new Settings(activity);
        Upload upload = new Uploads(activity).of(run.id);
        if (upload != null && upload.state.equals(Upload.WAITING)
                && !settings.mayUploadTo(upload.server)) {
            // It waits for a server that is not agreed to any more.
            upload = null;
        }
        sections.title(R.string.server);
        if (upload != null) {
            sections.line(state(upload));
        }
        button(R.string.show_sent, this::showSent);
        if (upload != null && upload.state.equals(Upload.SENT)) {
            Upload sent = upload;
            button(R.string.take_back, () -> takeBack(sent));
            Background.run(() -> ranking(sent), words -> sections.line(words));
        } else if (!settings.mayUpload()) {
            sections.quiet(activity.getString(R.string.upload_off));
        } else if (upload == null || !upload.state.equals(Upload.WAITING)) {
            button(R.string.send, () -> {
                UploadJob.send(activity, run.id);
                show();
            });
        }
    }

    private void button(int words, Runnable action) {
        Button button = new Button(activity);
        button.setText(words);
        button.setAllCaps(false);
        button.setOnClickListener(view -> action.run());
        place.addView(button);
    }

    private String state(Upload upload) {
        String answer = upload.answer == null ? "" : upload.answer;
        switch (upload.state) {
            case Upload.WAITING:
                return activity.getString(R.string.upload_waiting) + "\n" + answer;
            case Upload.SENT:
                return activity.getString(R.string.upload_sent, answer);
            case Upload.TAKEN_BACK:
                return activity.getString(R.string.upload_taken_back);
            default:
                return activity.getString(R.string.upload_refused, answer);
        }
    }

    private void showSent() {
        Background.run(() -> {
            try {
                return new Sender(activity).toSend(run);
            } catch (IOException error) {
                return error.getMessage();
            }
        }, text -> {
            if (!activity.isDestroyed()) {
                Json.fromTheLeft(new AlertDialog.Builder(activity)
                        .setTitle(R.string.show_sent).setMessage(text)
                        .setPositiveButton(android.R.string.ok, null).show());
            }
        });
    }

    private void takeBack(Upload upload) {
        Background.run(() -> new Sender(activity).takeBack(upload), trouble -> {
            if (activity.isDestroyed()) {
                return;
            }
            show();
            if (trouble != null) {
                new AlertDialog.Builder(activity).setMessage(trouble)
                        .setPositiveButton(android.R.string.ok, null).show();
            }
        });
    }

    /** Best, median and worst of this model at the server, in words. */
    private String ranking(Upload upload) {
        try {
            JSONObject at = new Sender(activity).place(upload,
                    figures.environment("android", "manufacturer"),
                    figures.environment("android", "model"));
            if (at == null) {
                return activity.getString(R.string.no_place);
            }
            boolean transactions = figures.isTransactions();
            String rank = at.isNull("rank")
                    ? activity.getString(R.string.no_rank)
                    : activity.getString(R.string.rank, at.optInt("rank"));
            return activity.getString(R.string.ranking, rank, at.optInt("installations"),
                    Words.rate(activity, transactions, at.optDouble("best")),
                    Words.rate(activity, transactions, at.optDouble("median")),
                    Words.rate(activity, transactions, at.optDouble("worst")));
        } catch (IOException error) {
            return activity.getString(R.string.ranking_unknown, error.getMessage());
        }
    }
}
