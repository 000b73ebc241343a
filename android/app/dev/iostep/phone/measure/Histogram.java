package dev.iostep.phone.measure;

import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

import java.util.Map;
import java.util.TreeMap;

/**
 * Latencies in buckets, as docs/format-bench.md has them: 256 from a power of two to the next.
 *
 * <p>Source of the numbering: h2histogram.org.
 */
final class Histogram {
    private static final int GROUPING_POWER = 8;
    private static final int MAX_VALUE_POWER = 40;
    /** Below this, each value has a bucket of its own. */
    private static final int EXACT_POWER = GROUPING_POWER + 1;

    private final TreeMap<Integer, Long> buckets = new TreeMap<>();
    private long count;
    private long sumNs;
    private long minNs = Long.MAX_VALUE;
    private long maxNs;

    void record(long latencyNs) {
        int index = index(Math.min(latencyNs, (1L << MAX_VALUE_POWER) - 1));
        Long before = buckets.get(index);
        buckets.put(index, before == null ? 1 : before + 1);
        count++;
        sumNs += latencyNs;
        minNs = Math.min(minNs, latencyNs);
        maxNs = Math.max(maxNs, latencyNs);
    }

    void add(Histogram other) {
        for (Map.Entry<Integer, Long> entry : other.buckets.entrySet()) {
            Long before = buckets.get(entry.getKey());
            buckets.put(entry.getKey(), (before == null ? 0 : before) + entry.getValue());
        }
        count += other.count;
        sumNs += other.sumNs;
        minNs = Math.min(minNs, other.minNs);
        maxNs = Math.max(maxNs, other.maxNs);
    }

    long count() {
        return count;
    }

    static int index(long value) {
        if (value < 1L << EXACT_POWER) {
            return (int) value;
        }
        int power = 63 - Long.numberOfLeadingZeros(value);
        long offset = (value - (1L << power)) >> (power - GROUPING_POWER);
        return (1 << EXACT_POWER) + ((power - EXACT_POWER) << GROUPING_POWER) + (int) offset;
    }

    JSONObject json() throws JSONException {
        JSONArray index = new JSONArray();
        JSONArray counts = new JSONArray();
        for (Map.Entry<Integer, Long> entry : buckets.entrySet()) {
            index.put(entry.getKey().intValue());
            counts.put(entry.getValue().longValue());
        }
        return new JSONObject()
                .put("grouping_power", GROUPING_POWER)
                .put("max_value_power", MAX_VALUE_POWER)
                .put("index", index)
                .put("buckets", counts)
                .put("sum_ns", sumNs)
                .put("min_ns", count > 0 ? minNs : 0)
                .put("max_ns", maxNs);
    }
}
