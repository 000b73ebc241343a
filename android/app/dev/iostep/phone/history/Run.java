package dev.iostep.phone.history;

/** A test that was run, as the history keeps it. */
public final class Run {
    /** It is under way, or its process died before it could say otherwise. */
    public static final String RUNNING = "running";
    public static final String COMPLETE = "complete";
    /** It ended early; what was measured is there. */
    public static final String PARTIAL = "partial";
    /** Nothing was measured. */
    public static final String FAILED = "failed";
    /** Its process ended without it: killed, or the phone switched off. */
    public static final String DIED = "died";

    public final long id;
    public final long startMs;
    /** A key of Workload. */
    public final String test;
    /** A name of Step.By. */
    public final String by;
    public final String state;
    /** Storage.volume; null in runs of before it was kept. */
    public final String volume;
    /** What the storage was called. */
    public final String storage;
    /** Operations a second, the median of its runs; 0 without a result. */
    public final double rate;
    /** Bytes a second, likewise. */
    public final double bytesRate;
    /** Why it ended early, or null. */
    public final String complaint;

    Run(long id, long startMs, String test, String by, String state, String volume, String storage,
            double rate, double bytesRate, String complaint) {
        this.id = id;
        this.startMs = startMs;
        this.test = test;
        this.by = by;
        this.state = state;
        this.volume = volume;
        this.storage = storage;
        this.rate = rate;
        this.bytesRate = bytesRate;
        this.complaint = complaint;
    }

    /** True if there are figures. */
    public boolean isMeasured() {
        return state.equals(COMPLETE) || state.equals(PARTIAL);
    }
}
