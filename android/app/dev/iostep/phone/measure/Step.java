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
    /** What of it is written to make ready, and by each operation. */
    private final long before;
    private final long each;
    /** What it takes of the storage at once, about. */
    public final long room;

    public Step(Workload workload, By by, Settings settings, WriteEstimate estimate) {
        this.workload = workload;
        this.by = by;
        this.arguments = new ArrayList<>(workload.arguments(settings));
        bytes = estimate.of(workload, settings);
        before = estimate.before(workload, settings);
        each = estimate.each(workload, settings);
        room = estimate.room(workload, settings);
    }

    /**
     * What it wrote, about, after so many operations: {@code share}, 0 to 1, is how far it came of
     * what it was to write. What ends by time may have done more than was estimated.
     */
    long written(double share, long operations) {
        return (long) Math.max(share * bytes, share * before + (double) operations * each);
    }
}
