package dev.iostep.phone.measure;

import java.util.ArrayList;
import java.util.List;

import dev.iostep.phone.settings.Settings;

/** One test of a plan, by one of the two engines. */
public final class Step {
    /** Who does the work. */
    public enum By {
        /** The program inside the app. */
        ENGINE,
        /** Android's own SQLite. */
        PHONE
    }

    public final Workload workload;
    public final By by;
    /** What stands behind {@code iostep bench}, but for the directory. */
    public final List<String> arguments;
    /** What it will write, about. */
    public final long bytes;

    public Step(Workload workload, By by, Settings settings, WriteEstimate estimate) {
        this.workload = workload;
        this.by = by;
        this.arguments = new ArrayList<>(workload.arguments(settings));
        this.bytes = estimate.of(workload, settings);
    }
}
