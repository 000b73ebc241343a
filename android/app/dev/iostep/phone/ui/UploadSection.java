package dev.iostep.phone.ui;

import android.app.AlertDialog;
import android.view.View;
import android.widget.Switch;
import android.widget.TextView;

import java.io.IOException;
import java.util.List;

import dev.iostep.phone.R;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.history.Upload;
import dev.iostep.phone.history.Uploads;
import dev.iostep.phone.settings.Address;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;
import dev.iostep.phone.upload.Sender;
import dev.iostep.phone.upload.UploadJob;

/** The part of the setting tab about uploads: off until agreed to, what is sent, what was sent. */
final class UploadSection {
    private final MainActivity activity;
    private final View root;
    private final Settings settings;
    private final Switch agree;

    UploadSection(MainActivity activity, View root, Settings settings) {
        this.activity = activity;
        this.root = root;
        this.settings = settings;
        agree = root.findViewById(R.id.agree);
        agree.setOnClickListener(view -> {
            if (agree.isChecked()) {
                // It is on once the person has seen what is sent.
                agree.setChecked(false);
                ask();
            } else {
                UploadJob.cancel(activity);
                show();
            }
        });
        root.findViewById(R.id.take_back_all).setOnClickListener(view -> takeBack());
    }

    void show() {
        String server = settings.text(Parameter.SERVER);
        agree.setEnabled(!server.isEmpty());
        agree.setChecked(settings.mayUpload());
        Uploads uploads = new Uploads(activity);
        int sent = uploads.sent().size();
        int waiting = settings.mayUpload() ? uploads.waiting(server).size() : 0;
        root.<TextView>findViewById(R.id.upload_state).setText(
                activity.getString(R.string.upload_state, sent, waiting));
        root.findViewById(R.id.take_back_all).setEnabled(sent > 0);
    }

    /** Shows what would be sent of the newest result, or what a result is made of without one. */
    private void ask() {
        List<Run> complete = History.of(activity).runs(null, Run.COMPLETE);
        if (complete.isEmpty()) {
            agreeTo(activity.getString(R.string.nothing_to_show_yet));
            return;
        }
        Background.run(() -> {
            try {
                return new Sender(activity).toSend(complete.get(0));
            } catch (IOException error) {
                return error.getMessage();
            }
        }, this::agreeTo);
    }

    private void agreeTo(String example) {
        if (activity.isDestroyed()) {
            return;
        }
        String server = settings.text(Parameter.SERVER);
        String plain = Address.isPlain(server) ? activity.getString(R.string.plain_http) : "";
        Json.fromTheLeft(new AlertDialog.Builder(activity)
                .setTitle(R.string.agree_title)
                .setMessage(activity.getString(R.string.agree_words, server, plain, example))
                .setPositiveButton(R.string.agree, (dialog, which) -> {
                    UploadJob.agree(activity);
                    show();
                })
                .setNegativeButton(R.string.do_not_agree, null)
                .show());
    }

    private void takeBack() {
        new AlertDialog.Builder(activity)
                .setMessage(R.string.take_back_question)
                .setPositiveButton(R.string.take_back, (dialog, which) -> Background.run(() -> {
                    Sender sender = new Sender(activity);
                    String trouble = null;
                    for (Upload upload : new Uploads(activity).sent()) {
                        String each = sender.takeBack(upload);
                        trouble = each == null ? trouble : each;
                    }
                    return trouble == null ? "" : trouble;
                }, this::said))
                .setNegativeButton(android.R.string.cancel, null)
                .show();
    }

    private void said(String trouble) {
        show();
        if (!trouble.isEmpty() && !activity.isDestroyed()) {
            new AlertDialog.Builder(activity).setMessage(trouble)
                    .setPositiveButton(android.R.string.ok, null).show();
        }
    }
}
