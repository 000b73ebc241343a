package dev.iostep.phone.measure;

import org.json.JSONException;
import org.json.JSONObject;

/** How far a test is: a line of {@code iostep bench --progress}. */
public final class Progress {
    /** The run under way, from 1, and how many there are at most. */
    public final int run;
    public final int runs;
    /** False while files or databases are made. */
    public final boolean measuring;
    /** Of this run, 0 to 1. */
    public final double done;
    /** What is left of this run, nanoseconds; -1 where nothing tells. */
    public final long leftNs;

    public Progress(int run, int runs, boolean measuring, double done, long leftNs) {
        this.run = run;
        this.runs = runs;
        this.measuring = measuring;
        this.done = done;
        this.leftNs = leftNs;
    }

    /** Of what all runs write, 0 to 1, if making ready writes so much of it. */
    double written(double preparing) {
        double within = measuring ? preparing + (1 - preparing) * done : preparing * done;
        return (run - 1 + within) / runs;
    }

    /** The progress that a line tells of, or null for any other line. */
    public static Progress of(String line) {
        if (!line.startsWith("{")) {
            return null;
        }
        try {
            JSONObject json = new JSONObject(line);
            return new Progress(json.getInt("run"), json.getInt("runs"),
                    json.getString("phase").equals("running"), json.getDouble("done"),
                    json.isNull("left_ns") ? -1 : json.getLong("left_ns"));
        } catch (JSONException none) {
            return null;
        }
    }

    /** Who is told. */
    public interface Listener {
        void onProgress(Progress progress);
    }
}
