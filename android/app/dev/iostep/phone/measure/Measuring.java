package dev.iostep.phone.measure;

import android.os.Handler;
import android.os.Looper;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * The run under way, for every screen that shows it: it lives as long as the process, whatever
 * becomes of a screen. Listeners are called on the main thread.
 */
public final class Measuring {
    private static final Measuring ONLY = new Measuring();

    /** Who is told that something is different. */
    public interface Listener {
        void onMeasuring();
    }

    private final Set<Listener> listeners = new LinkedHashSet<>();
    private final Handler main = new Handler(Looper.getMainLooper());
    private List<Step> steps = new ArrayList<>();
    private int step;
    private Progress progress;
    private Stop stop;
    private long stepBeganMs;
    private final List<Long> done = new ArrayList<>();
    private String trouble;

    private Measuring() {}

    public static Measuring get() {
        return ONLY;
    }

    /** Begins a run of these steps; null if one is under way. */
    synchronized Stop begin(List<Step> steps) {
        if (stop != null) {
            return null;
        }
        this.steps = steps;
        step = 0;
        progress = null;
        done.clear();
        trouble = null;
        stop = new Stop();
        stepBeganMs = now();
        tell();
        return stop;
    }

    synchronized void beginStep(int number) {
        step = number;
        progress = null;
        stepBeganMs = now();
        tell();
    }

    synchronized void progress(Progress progress) {
        this.progress = progress;
        tell();
    }

    /** A step is over, and this is its number in the history. */
    synchronized void endStep(long run) {
        done.add(run);
        tell();
    }

    /** All is over; {@code trouble} says why early, or is null. */
    synchronized void end(String trouble) {
        this.trouble = trouble;
        stop = null;
        tell();
    }

    public synchronized boolean isRunning() {
        return stop != null;
    }

    /** The person ends what is under way, if anything is. */
    public void stop() {
        stop(null);
    }

    /** The same for a reason; null is the person's wish. */
    void stop(String why) {
        Stop stop;
        synchronized (this) {
            stop = this.stop;
        }
        if (stop != null) {
            stop.ask(why);
        }
    }

    /** The step under way, or null. */
    public synchronized Step step() {
        return stop != null && step < steps.size() ? steps.get(step) : null;
    }

    public synchronized int number() {
        return step + 1;
    }

    public synchronized int count() {
        return steps.size();
    }

    public synchronized Progress progressNow() {
        return progress;
    }

    /** Of all steps, 0 to 1. */
    public synchronized double share() {
        double within = 0;
        if (progress != null) {
            within = (progress.run - 1 + (progress.measuring ? progress.done : 0)) / progress.runs;
        }
        return steps.isEmpty() ? 0 : Math.min(1, (step + within) / steps.size());
    }

    /** Seconds that are left as long as it goes on as it did; -1 before anything tells. */
    public synchronized long secondsLeft() {
        if (progress == null || !progress.measuring || progress.leftNs < 0) {
            return -1;
        }
        double elapsed = (now() - stepBeganMs) / 1e3;
        double share = (progress.run - 1 + progress.done) / progress.runs;
        if (share <= 0) {
            return -1;
        }
        double ofStep = elapsed / share;
        return Math.round(ofStep - elapsed + (steps.size() - step - 1) * ofStep);
    }

    /** Numbers in the history of what this run measured. */
    public synchronized List<Long> results() {
        return new ArrayList<>(done);
    }

    /** Why the last run ended early, or null. */
    public synchronized String trouble() {
        return trouble;
    }

    public synchronized void add(Listener listener) {
        listeners.add(listener);
    }

    public synchronized void remove(Listener listener) {
        listeners.remove(listener);
    }

    private static long now() {
        return System.nanoTime() / 1_000_000;
    }

    private void tell() {
        for (final Listener listener : listeners) {
            main.post(new Runnable() {
                @Override
                public void run() {
                    boolean there;
                    synchronized (Measuring.this) {
                        there = listeners.contains(listener);
                    }
                    if (there) {
                        listener.onMeasuring();
                    }
                }
            });
        }
    }
}
