package dev.iostep.phone.measure;

import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

import java.util.ArrayList;
import java.util.List;

/** What was done in each second of a run. */
final class PhoneSeconds {
    static final long SECOND_NS = 1_000_000_000;

    private final List<long[]> seconds = new ArrayList<>();

    /** Counts an operation that ended so long after the start. */
    void add(long endNs, long latencyNs, long bytes) {
        add((int) (endNs / SECOND_NS), new long[] {1, bytes, latencyNs, latencyNs});
    }

    private void add(int second, long[] more) {
        while (seconds.size() <= second) {
            seconds.add(new long[4]);
        }
        long[] sums = seconds.get(second);
        for (int each = 0; each < 3; each++) {
            sums[each] += more[each];
        }
        sums[3] = Math.max(sums[3], more[3]);
    }

    void add(PhoneSeconds other) {
        for (int second = 0; second < other.seconds.size(); second++) {
            add(second, other.seconds.get(second));
        }
    }

    long bytes() {
        long bytes = 0;
        for (long[] sums : seconds) {
            bytes += sums[1];
        }
        return bytes;
    }

    /** All of a run of this length: the last may be shorter. */
    JSONArray json(long elapsedNs) throws JSONException {
        JSONArray list = new JSONArray();
        long begin = 0;
        for (int second = 0; begin < elapsedNs; second++, begin += SECOND_NS) {
            long[] sums = second < seconds.size() ? seconds.get(second) : new long[4];
            list.put(new JSONObject()
                    .put("length_ns", Math.min(SECOND_NS, elapsedNs - begin))
                    .put("operations", sums[0])
                    .put("bytes", sums[1])
                    .put("latency_sum_ns", sums[2])
                    .put("latency_max_ns", sums[3])
                    .put("device", JSONObject.NULL));
        }
        return list;
    }
}
