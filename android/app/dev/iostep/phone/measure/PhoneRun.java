package dev.iostep.phone.measure;

import android.content.Context;

import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

import java.util.List;

import dev.iostep.phone.R;

/** A run of Android's SQLite: its threads together, as a run of docs/format-bench.md. */
final class PhoneRun {
    private final Context context;
    private final List<PhoneWorker> workers;
    private final long goal;
    private long startNs;
    private long startWallNs;

    PhoneRun(Context context, JSONObject job, List<PhoneWorker> workers) throws JSONException {
        this.context = context;
        this.workers = workers;
        goal = job.getLong("transactions") * workers.size();
    }

    void start() {
        startWallNs = System.currentTimeMillis() * 1_000_000;
        startNs = System.nanoTime();
        for (PhoneWorker worker : workers) {
            worker.start(startNs);
        }
    }

    /** Waits for at most so long; true once all are done. */
    boolean join(long ns) {
        try {
            long until = System.nanoTime() + ns;
            for (PhoneWorker worker : workers) {
                long left = (until - System.nanoTime()) / 1_000_000;
                worker.join(Math.max(1, left));
                if (worker.isAlive()) {
                    return false;
                }
            }
        } catch (InterruptedException interrupted) {
            // Nobody interrupts a run but by Stop, which the workers look at.
            Thread.currentThread().interrupt();
        }
        return true;
    }

    private long done() {
        long done = 0;
        for (PhoneWorker worker : workers) {
            done += worker.done;
        }
        return done;
    }

    Progress progress() {
        double done = (double) done() / goal;
        long elapsed = System.nanoTime() - startNs;
        long left = done > 0 ? (long) (elapsed * (1 - done) / done) : -1;
        return new Progress(1, 1, true, done, left);
    }

    /** What went wrong, in words; empty if nothing did. */
    String complaint() {
        StringBuilder words = new StringBuilder();
        for (PhoneWorker worker : workers) {
            if (worker.outOfMemory) {
                return context.getString(R.string.failed_memory);
            }
            if (worker.failure != null) {
                words.append(context.getString(R.string.phone_failed,
                        worker.attempt + ": " + worker.failure)).append('\n');
            }
        }
        return words.toString().trim();
    }

    JSONObject json() throws JSONException {
        Histogram total = new Histogram();
        Histogram commits = new Histogram();
        PhoneSeconds seconds = new PhoneSeconds();
        ThreadCost cost = new ThreadCost();
        JSONArray threads = new JSONArray();
        JSONArray failures = new JSONArray();
        long endNs = startNs + 1;
        long bytes = 0;
        long idle = 0;
        for (int thread = 0; thread < workers.size(); thread++) {
            PhoneWorker worker = workers.get(thread);
            total.add(worker.total);
            commits.add(worker.commits);
            seconds.add(worker.seconds);
            cost.userNs += worker.cost.userNs;
            cost.systemNs += worker.cost.systemNs;
            cost.voluntary += worker.cost.voluntary;
            cost.involuntary += worker.cost.involuntary;
            endNs = Math.max(endNs, worker.endNs);
            idle += worker.idleNs;
            long own = worker.seconds.bytes();
            bytes += own;
            threads.put(new JSONObject().put("operations", worker.done).put("bytes", own)
                    .put("elapsed_ns", Math.max(1, worker.endNs - startNs)));
            if (worker.failure != null) {
                failures.put(new JSONObject().put("thread", thread)
                        .put("operation", worker.done + 1).put("attempt", worker.attempt)
                        .put("reason", worker.failure));
            }
        }
        boolean failed = failures.length() > 0;
        String state = failed ? "failed" : done() < goal ? "interrupted" : "complete";
        JSONArray latencies = new JSONArray().put(step("total", total))
                .put(step("transaction", total));
        if (commits.count() > 0) {
            latencies.put(step("commit", commits));
        }
        return new JSONObject().put("state", state).put("start_wall_ns", startWallNs)
                .put("elapsed_ns", endNs - startNs).put("operations", done()).put("bytes", bytes)
                .put("idle_ns", idle).put("latencies", latencies)
                .put("seconds", seconds.json(endNs - startNs)).put("cpu", cpu(cost))
                .put("device", JSONObject.NULL).put("page_cache", JSONObject.NULL)
                .put("threads", threads).put("failures", failures)
                .put("verification", JSONObject.NULL);
    }

    private static JSONObject step(String name, Histogram histogram) throws JSONException {
        return new JSONObject().put("step", name).put("histogram", histogram.json());
    }

    /** The machine's time is not shown to an app. */
    private static JSONObject cpu(ThreadCost cost) throws JSONException {
        return new JSONObject().put("user_ns", cost.userNs).put("system_ns", cost.systemNs)
                .put("voluntary_switches", cost.voluntary)
                .put("involuntary_switches", cost.involuntary).put("machine", JSONObject.NULL);
    }
}
