package dev.iostep.phone.measure;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

import dev.iostep.phone.R;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;

/** A button of the measure screen, and the steps that it stands for. */
public enum Button {
    ALL(R.id.button_all),
    FILE(R.id.button_file),
    SQLITE(R.id.button_sqlite),
    CUSTOM(R.id.button_custom),
    RANKED(R.id.button_ranked);

    public final int view;

    Button(int view) {
        this.view = view;
    }

    /** Whether it runs a test; for the custom one by the names that the person chose. */
    private boolean has(Workload workload, Set<String> custom) {
        switch (this) {
            case ALL:
                return workload.kind != Workload.Kind.RANKED;
            case FILE:
                return workload.kind == Workload.Kind.FILE;
            case SQLITE:
                return workload.kind == Workload.Kind.SQLITE;
            case CUSTOM:
                return workload.kind != Workload.Kind.RANKED && custom.contains(workload.key());
            default:
                return workload.kind == Workload.Kind.RANKED;
        }
    }

    /** What is done, in order: each test of SQLite by both engines, one after the other. */
    public List<Step> plan(Settings settings, WriteEstimate estimate) {
        String by = settings.text(Parameter.VENDOR);
        List<Step> steps = new ArrayList<>();
        for (Workload workload : Workload.values()) {
            if (!has(workload, settings.custom())) {
                continue;
            }
            // Android's SQLite has no waldio, and the ranked tests are of one engine.
            boolean phoneCan = workload.kind == Workload.Kind.SQLITE
                    && !settings.text(Parameter.JOURNAL).equals("waldio");
            if (!phoneCan || !by.equals("phone")) {
                steps.add(new Step(workload, Step.By.ENGINE, settings, estimate));
            }
            if (phoneCan && !by.equals("own")) {
                steps.add(new Step(workload, Step.By.PHONE, settings, estimate));
            }
        }
        return steps;
    }
}
