package dev.iostep.phone.ui;

import android.Manifest;
import android.app.AlertDialog;
import android.content.pm.PackageManager;
import android.os.Build;
import android.view.View;
import android.view.ViewGroup;
import android.widget.AdapterView;
import android.widget.ArrayAdapter;
import android.widget.ProgressBar;
import android.widget.Spinner;
import android.widget.TextView;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import dev.iostep.phone.PhoneApp;
import dev.iostep.phone.R;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.measure.Button;
import dev.iostep.phone.measure.Conditions;
import dev.iostep.phone.measure.MeasureService;
import dev.iostep.phone.measure.Measuring;
import dev.iostep.phone.measure.Refusal;
import dev.iostep.phone.measure.Step;
import dev.iostep.phone.measure.Storage;
import dev.iostep.phone.measure.Workload;
import dev.iostep.phone.measure.WriteEstimate;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;

/** The tab where tests are begun and followed. */
final class MeasurePage implements MainActivity.Page, Measuring.Listener {
    private final MainActivity activity;
    private final View root;
    private final Settings settings;
    private final History history;
    private final Measuring measuring = Measuring.get();
    private List<Storage> places;
    private int shown = -1;

    MeasurePage(MainActivity activity, View root) {
        this.activity = activity;
        this.root = root;
        settings = new Settings(activity);
        history = History.of(activity);
        for (Button button : Button.values()) {
            root.findViewById(button.view).setOnClickListener(view -> press(button));
        }
        root.findViewById(R.id.stop).setOnClickListener(view -> measuring.stop());
    }

    @Override
    public void onShow() {
        showStorage();
        measuring.add(this);
        // One may have been deleted meanwhile.
        shown = -1;
        onMeasuring();
        PhoneApp app = (PhoneApp) activity.getApplicationContext();
        if (app.trouble() != null) {
            say(app.trouble());
        }
        if (app.damaged() != null) {
            say(app.damaged());
        }
        int died = app.takeDied();
        if (died > 0) {
            say(activity.getResources().getQuantityString(R.plurals.died, died, died));
        }
    }

    @Override
    public void onHide() {
        measuring.remove(this);
    }

    private void showStorage() {
        places = Storage.all(activity);
        Spinner spinner = root.findViewById(R.id.storage);
        ArrayAdapter<Storage> names = new ArrayAdapter<>(activity,
                R.layout.chosen, places);
        names.setDropDownViewResource(R.layout.to_choose);
        spinner.setAdapter(names);
        spinner.setSelection(places.indexOf(Storage.of(places, settings.storage())));
        spinner.setOnItemSelectedListener(new AdapterView.OnItemSelectedListener() {
            @Override
            public void onItemSelected(AdapterView<?> parent, View view, int at, long id) {
                settings.setStorage(places.get(at).directory.getPath());
            }

            @Override
            public void onNothingSelected(AdapterView<?> parent) {}
        });
    }

    private void press(Button button) {
        if (button == Button.CUSTOM) {
            choose();
        } else {
            ask(button);
        }
    }

    /** The tests of the custom button. */
    private void choose() {
        List<Workload> tests = new ArrayList<>();
        for (Workload workload : Workload.values()) {
            if (workload.kind != Workload.Kind.RANKED) {
                tests.add(workload);
            }
        }
        Set<String> custom = settings.custom();
        CharSequence[] names = new CharSequence[tests.size()];
        boolean[] chosen = new boolean[tests.size()];
        for (int at = 0; at < names.length; at++) {
            names[at] = activity.getString(tests.get(at).title);
            chosen[at] = custom.contains(tests.get(at).key());
        }
        new AlertDialog.Builder(activity)
                .setTitle(R.string.choose_tests)
                .setMultiChoiceItems(names, chosen, (dialog, at, on) -> chosen[at] = on)
                .setPositiveButton(R.string.go_on, (dialog, which) -> {
                    Set<String> names2 = new HashSet<>();
                    for (int at = 0; at < chosen.length; at++) {
                        if (chosen[at]) {
                            names2.add(tests.get(at).key());
                        }
                    }
                    settings.setCustom(names2);
                    ask(Button.CUSTOM);
                })
                .setNegativeButton(android.R.string.cancel, null)
                .show();
    }

    /** Says what will be written before anything is. */
    private void ask(Button button) {
        Storage storage = Storage.of(places, settings.storage());
        List<Step> steps = button.plan(settings, new WriteEstimate(
                workload -> history.latestRate(workload.key(), storage)));
        if (isRefused(steps, storage)) {
            return;
        }
        long written = history.written();
        long cap = settings.bytes(Parameter.CAP);
        long bytes = Refusal.bytes(steps);
        String question = activity.getString(R.string.will_write, Words.bytes(activity, bytes),
                storage.name, Words.bytes(activity, written), Words.bytes(activity, cap));
        new AlertDialog.Builder(activity)
                .setTitle(activity.getResources().getQuantityString(R.plurals.tests, steps.size(),
                        steps.size()))
                .setMessage(question)
                .setPositiveButton(R.string.start, (dialog, which) -> begin(steps, storage))
                .setNegativeButton(android.R.string.cancel, null)
                .show();
    }

    /** Whether a run may not begin, which is said. */
    private boolean isRefused(List<Step> steps, Storage storage) {
        String refusal = Refusal.of(activity, Conditions.now(activity), storage.directory, steps,
                history.written(), settings.bytes(Parameter.CAP));
        if (refusal != null) {
            say(refusal);
        }
        return refusal != null;
    }

    private void begin(List<Step> steps, Storage storage) {
        // The question may have stood there for hours.
        if (isRefused(steps, storage)) {
            return;
        }
        if (Build.VERSION.SDK_INT >= Build.VERSION_CODES.TIRAMISU
                && activity.checkSelfPermission(Manifest.permission.POST_NOTIFICATIONS)
                        != PackageManager.PERMISSION_GRANTED
                && settings.takeNotificationQuestion()) {
            activity.requestPermissions(new String[] {Manifest.permission.POST_NOTIFICATIONS}, 0);
        }
        shown = -1;
        MeasureService.begin(activity, steps, storage);
    }

    private void say(String trouble) {
        TextView text = root.findViewById(R.id.trouble);
        text.setText(trouble);
        text.setVisibility(trouble == null ? View.GONE : View.VISIBLE);
    }

    @Override
    public void onMeasuring() {
        boolean running = measuring.isRunning();
        for (Button button : Button.values()) {
            root.findViewById(button.view).setEnabled(!running);
        }
        root.findViewById(R.id.storage).setEnabled(!running);
        // Stop is to be found without scrolling, in any size of text.
        root.findViewById(R.id.starting).setVisibility(running ? View.GONE : View.VISIBLE);
        root.findViewById(R.id.running).setVisibility(running ? View.VISIBLE : View.GONE);
        root.<TextView>findViewById(R.id.progress_text)
                .setText(Words.progress(activity, measuring));
        root.<ProgressBar>findViewById(R.id.progress)
                .setProgress((int) (1000 * measuring.share()));
        if (running || measuring.trouble() != null) {
            say(measuring.trouble());
        }
        showResults();
    }

    private void showResults() {
        List<Long> results = measuring.results();
        if (results.size() == shown) {
            return;
        }
        shown = results.size();
        // Not at each progress: nothing is read from the storage while it is measured.
        root.<TextView>findViewById(R.id.wear).setText(activity.getString(R.string.wear,
                Words.bytes(activity, history.written()),
                Words.bytes(activity, settings.bytes(Parameter.CAP))));
        ViewGroup list = root.findViewById(R.id.results);
        list.removeAllViews();
        for (long id : results) {
            Run run = history.run(id);
            if (run != null) {
                list.addView(RunRow.make(activity, list, run));
            }
        }
    }
}
