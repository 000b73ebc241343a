package dev.iostep.phone.ui;

import android.content.Intent;
import android.view.View;
import android.view.ViewGroup;
import android.widget.AdapterView;
import android.widget.ArrayAdapter;
import android.widget.CheckBox;
import android.widget.Spinner;
import android.widget.TextView;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

import dev.iostep.phone.R;
import dev.iostep.phone.history.Export;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.measure.Workload;

/** The tab with every run: by test and state, two beside each other, all of them as a file. */
final class HistoryPage implements MainActivity.Page {
    /** States that the filter offers, after all of them. */
    private static final String[] STATES = {Run.COMPLETE, Run.PARTIAL, Run.FAILED, Run.DIED};
    /** A list of views, not of a million. */
    private static final int MOST_ROWS = 200;

    private final MainActivity activity;
    private final View root;
    private final History history;
    private final Set<Long> chosen = new LinkedHashSet<>();
    private String test;
    private String state;

    HistoryPage(MainActivity activity, View root) {
        this.activity = activity;
        this.root = root;
        history = History.of(activity);
        List<String> tests = new ArrayList<>();
        tests.add(activity.getString(R.string.all_tests));
        for (Workload workload : Workload.values()) {
            tests.add(activity.getString(workload.title));
        }
        filter(R.id.filter_test, tests, at -> {
            test = at == 0 ? null : Workload.values()[at - 1].key();
            show();
        });
        List<String> states = new ArrayList<>();
        states.add(activity.getString(R.string.all_states));
        for (String each : STATES) {
            states.add(activity.getString(Words.stateName(each)));
        }
        filter(R.id.filter_state, states, at -> {
            state = at == 0 ? null : STATES[at - 1];
            show();
        });
        root.findViewById(R.id.export_json).setOnClickListener(
                view -> Export.shareJson(activity, runs()));
        root.findViewById(R.id.export_csv).setOnClickListener(
                view -> Export.shareCsv(activity, runs()));
        root.findViewById(R.id.compare).setOnClickListener(view -> compare());
    }

    private interface Chosen {
        void at(int position);
    }

    private void filter(int view, List<String> names, Chosen chosen) {
        Spinner spinner = root.findViewById(view);
        ArrayAdapter<String> adapter = new ArrayAdapter<>(activity,
                R.layout.chosen, names);
        adapter.setDropDownViewResource(R.layout.to_choose);
        spinner.setAdapter(adapter);
        spinner.setOnItemSelectedListener(new AdapterView.OnItemSelectedListener() {
            @Override
            public void onItemSelected(AdapterView<?> parent, View row, int at, long id) {
                chosen.at(at);
            }

            @Override
            public void onNothingSelected(AdapterView<?> parent) {}
        });
    }

    private List<Run> runs() {
        return history.runs(test, state);
    }

    @Override
    public void onShow() {
        show();
    }

    @Override
    public void onHide() {}

    private void show() {
        ViewGroup list = root.findViewById(R.id.runs);
        list.removeAllViews();
        chosen.clear();
        List<Run> runs = runs();
        for (Run run : runs.subList(0, Math.min(MOST_ROWS, runs.size()))) {
            View row = RunRow.make(activity, list, run);
            if (run.isMeasured()) {
                addBox((ViewGroup) row, run);
            }
            list.addView(row);
        }
        TextView empty = root.findViewById(R.id.empty);
        empty.setVisibility(runs.size() > 0 && runs.size() <= MOST_ROWS ? View.GONE : View.VISIBLE);
        empty.setText(runs.isEmpty() ? activity.getString(R.string.no_runs)
                : activity.getString(R.string.more_runs, MOST_ROWS, runs.size()));
        root.findViewById(R.id.export_json).setEnabled(!runs.isEmpty());
        root.findViewById(R.id.export_csv).setEnabled(!runs.isEmpty());
        update();
    }

    private void addBox(ViewGroup row, Run run) {
        CheckBox box = new CheckBox(activity);
        box.setText(R.string.to_compare);
        box.setTextAlignment(View.TEXT_ALIGNMENT_VIEW_START);
        box.setContentDescription(activity.getString(R.string.to_compare_of,
                Words.test(activity, run), Words.figure(activity, run)));
        box.setMinHeight(Math.round(48 * activity.getResources().getDisplayMetrics().density));
        box.setOnCheckedChangeListener((view, on) -> {
            if (on) {
                chosen.add(run.id);
            } else {
                chosen.remove(run.id);
            }
            update();
        });
        row.addView(box);
    }

    private void update() {
        root.findViewById(R.id.compare).setEnabled(chosen.size() == 2);
    }

    private void compare() {
        List<Long> ids = new ArrayList<>(chosen);
        activity.startActivity(new Intent(activity, CompareActivity.class)
                .putExtra(CompareActivity.FIRST, Math.min(ids.get(0), ids.get(1)))
                .putExtra(CompareActivity.SECOND, Math.max(ids.get(0), ids.get(1))));
    }
}
