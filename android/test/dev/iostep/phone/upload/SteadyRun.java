package dev.iostep.phone.upload;

import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** A run that took the same time for each transaction: all that a server checks holds of it. */
public final class SteadyRun {
    private static final long SECOND_NS = 1_000_000_000;

    private final int seconds;
    private final int perSecond;

    public SteadyRun(int seconds, int perSecond) {
        this.seconds = seconds;
        this.perSecond = perSecond;
    }

    public JSONObject json() throws JSONException {
        long operations = (long) seconds * perSecond;
        long latencyNs = SECOND_NS / perSecond;
        JSONArray each = new JSONArray();
        for (int second = 0; second < seconds; second++) {
            each.put(new JSONObject().put("length_ns", SECOND_NS).put("operations", perSecond)
                    .put("bytes", 100L * perSecond).put("latency_sum_ns", perSecond * latencyNs)
                    .put("latency_max_ns", latencyNs).put("device", JSONObject.NULL));
        }
        // The bucket of 20,000,000 ns: 256 from 2^24 to 2^25.
        long index = 512 + ((24 - 9) << 8) + ((latencyNs - (1 << 24)) >> 16);
        JSONObject histogram = new JSONObject().put("grouping_power", 8)
                .put("max_value_power", 40).put("index", new JSONArray().put(index))
                .put("buckets", new JSONArray().put(operations))
                .put("sum_ns", operations * latencyNs).put("min_ns", latencyNs)
                .put("max_ns", latencyNs);
        JSONArray latencies = new JSONArray();
        for (String step : new String[] {"total", "transaction"}) {
            latencies.put(new JSONObject().put("step", step).put("histogram", histogram));
        }
        JSONObject cpu = new JSONObject().put("user_ns", 0).put("system_ns", 0)
                .put("voluntary_switches", 0).put("involuntary_switches", 0)
                .put("machine", JSONObject.NULL);
        JSONObject thread = new JSONObject().put("operations", operations)
                .put("bytes", 100 * operations).put("elapsed_ns", seconds * SECOND_NS);
        return new JSONObject().put("state", "complete").put("start_wall_ns", 1)
                .put("elapsed_ns", seconds * SECOND_NS).put("operations", operations)
                .put("bytes", 100 * operations).put("idle_ns", 0).put("latencies", latencies)
                .put("seconds", each).put("cpu", cpu).put("device", JSONObject.NULL)
                .put("page_cache", JSONObject.NULL).put("threads", new JSONArray().put(thread))
                .put("failures", new JSONArray()).put("verification", JSONObject.NULL);
    }
}
