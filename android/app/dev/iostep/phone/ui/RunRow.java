package dev.iostep.phone.ui;

import android.app.Activity;
import android.content.Intent;
import android.view.LayoutInflater;
import android.view.View;
import android.view.ViewGroup;
import android.widget.TextView;

import dev.iostep.phone.R;
import dev.iostep.phone.history.Run;

/** A run in a list: what, how fast, when; a touch opens it. */
final class RunRow {
    private RunRow() {}

    static View make(Activity activity, ViewGroup parent, Run run) {
        View row = LayoutInflater.from(activity).inflate(R.layout.run_row, parent, false);
        row.<TextView>findViewById(R.id.row_test).setText(Words.test(activity, run));
        row.<TextView>findViewById(R.id.row_figure).setText(Words.figure(activity, run));
        row.<TextView>findViewById(R.id.row_state).setText(Words.state(activity, run));
        row.setOnClickListener(view -> activity.startActivity(
                new Intent(activity, ResultActivity.class).putExtra(ResultActivity.RUN, run.id)));
        return row;
    }
}
