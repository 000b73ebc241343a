package dev.iostep.phone.history;

import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

import java.util.Arrays;

/** The numbers of a result that screens show: read, never computed. */
public final class Figures {
    /** The steps of an operation, and the percentiles of each, in the order of the screen. */
    public static final String[] PERCENTILES = {"p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "max_ns"};

    private static final double SECOND_NS = 1e9;

    private final JSONObject result;
    private final JSONObject summary;

    private Figures(JSONObject result, JSONObject summary) {
        this.result = result;
        this.summary = summary;
    }

    /** Of a text that the engine printed. */
    public static Figures of(String text) {
        Figures figures = read(text);
        return figures == null ? new Figures(new JSONObject(), new JSONObject()) : figures;
    }

    /** True for a result from its beginning to its end: an engine that is killed may print half. */
    public static boolean isResult(String text) {
        return read(text) != null;
    }

    private static Figures read(String text) {
        try {
            JSONObject whole = new JSONObject(text);
            return new Figures(whole.getJSONObject("result"), whole.getJSONObject("summary"));
        } catch (JSONException half) {
            return null;
        }
    }

    /** A measure's median over the complete runs, or that of the first run where none is complete. */
    public double rate() {
        return measure("operations_per_second");
    }

    public double bytesRate() {
        return measure("bytes_per_second");
    }

    private double measure(String name) {
        double median = estimate(name, "median");
        if (!Double.isNaN(median)) {
            return median;
        }
        JSONObject run = firstRun();
        JSONObject throughput = run == null ? null : run.optJSONObject("throughput");
        return throughput == null ? 0 : throughput.optDouble(name, 0);
    }

    /** A value of an estimate: median, minimum, maximum, spread; NaN where there is none. */
    public double estimate(String measure, String value) {
        JSONArray estimates = summary.optJSONArray("estimates");
        for (int at = 0; estimates != null && at < estimates.length(); at++) {
            JSONObject estimate = estimates.optJSONObject(at);
            if (estimate != null && measure.equals(estimate.optString("measure"))) {
                return estimate.isNull(value) ? Double.NaN : estimate.optDouble(value);
            }
        }
        return Double.NaN;
    }

    /** The run that percentiles are shown of: the first. */
    private JSONObject firstRun() {
        JSONArray runs = summary.optJSONArray("runs");
        return runs == null ? null : runs.optJSONObject(0);
    }

    public int runs() {
        JSONArray runs = summary.optJSONArray("runs");
        return runs == null ? 0 : runs.length();
    }

    /** Rows of step, count and percentiles of the first run. */
    public JSONArray latencies() {
        JSONObject run = firstRun();
        JSONArray list = run == null ? null : run.optJSONArray("latencies");
        return list == null ? new JSONArray() : list;
    }

    /** Shares of the machine's time of the first run, or null where Android does not tell. */
    public JSONObject machine() {
        JSONObject run = firstRun();
        JSONObject cpu = run == null ? null : run.optJSONObject("cpu");
        return cpu == null ? null : cpu.optJSONObject("machine");
    }

    /** Processor time and switches of the first run, or null. */
    public JSONObject cpu() {
        JSONObject run = firstRun();
        return run == null ? null : run.optJSONObject("cpu");
    }

    /**
     * Operations a second in each whole second of the first run, as the engine takes them: what ended
     * in the fraction at the end would be multiplied.
     */
    public double[] perSecond() {
        JSONArray runs = result.optJSONArray("runs");
        JSONObject run = runs == null ? null : runs.optJSONObject(0);
        JSONArray seconds = run == null ? null : run.optJSONArray("seconds");
        double[] rates = new double[seconds == null ? 0 : seconds.length()];
        int whole = 0;
        for (int second = 0; second < rates.length; second++) {
            JSONObject each = seconds.optJSONObject(second);
            double length = each.optDouble("length_ns", 0);
            if (length >= SECOND_NS) {
                rates[whole++] = each.optDouble("operations", 0) / length * SECOND_NS;
            }
        }
        return Arrays.copyOf(rates, whole);
    }

    /** Operations of all runs. */
    public long operations() {
        JSONArray runs = result.optJSONArray("runs");
        long operations = 0;
        for (int at = 0; runs != null && at < runs.length(); at++) {
            operations += runs.optJSONObject(at).optLong("operations", 0);
        }
        return operations;
    }

    /** Bytes that the device counted during all runs; 0 where it is not known. */
    public long written() {
        JSONArray runs = result.optJSONArray("runs");
        long written = 0;
        for (int at = 0; runs != null && at < runs.length(); at++) {
            JSONObject device = runs.optJSONObject(at).optJSONObject("device");
            JSONObject write = device == null ? null : device.optJSONObject("write");
            written += write == null ? 0 : write.optLong("bytes", 0);
        }
        return written;
    }

    /** Warnings that stand in the result, and those that follow from the figures. */
    public JSONArray warnings() {
        JSONArray warnings = summary.optJSONArray("warnings");
        return warnings == null ? new JSONArray() : warnings;
    }

    /** What was counted: operation or transaction. */
    public boolean isTransactions() {
        return "transaction".equals(summary.optString("work"));
    }

    /** A value of the environment, or an empty text. */
    public String environment(String object, String name) {
        JSONObject environment = result.optJSONObject("environment");
        JSONObject at = environment == null || object == null
                ? environment : environment.optJSONObject(object);
        return at == null || at.isNull(name) ? "" : at.optString(name);
    }
}
