package dev.iostep.phone.measure;

import java.io.BufferedReader;
import java.io.FileReader;
import java.io.IOException;

/** Processor time and context switches of the thread that asks, by what its own /proc says. */
final class ThreadCost {
    /** A tick of /proc: USER_HZ is 100 on every Android. */
    private static final long TICK_NS = 10_000_000;

    long userNs;
    long systemNs;
    long voluntary;
    long involuntary;

    static ThreadCost now() {
        ThreadCost cost = new ThreadCost();
        try (BufferedReader stat = new BufferedReader(new FileReader("/proc/thread-self/stat"))) {
            String line = stat.readLine();
            // The name before may hold blanks; fields 14 and 15 are user and system time (proc(5)).
            String[] fields = line.substring(line.lastIndexOf(')') + 2).split(" ");
            cost.userNs = Long.parseLong(fields[11]) * TICK_NS;
            cost.systemNs = Long.parseLong(fields[12]) * TICK_NS;
        } catch (IOException | RuntimeException unreadable) {
            // Nothing is known, which is 0 in the result.
        }
        try (BufferedReader status =
                new BufferedReader(new FileReader("/proc/thread-self/status"))) {
            for (String line = status.readLine(); line != null; line = status.readLine()) {
                if (line.startsWith("voluntary_ctxt_switches:")) {
                    cost.voluntary = Long.parseLong(line.replaceAll("\\D", ""));
                } else if (line.startsWith("nonvoluntary_ctxt_switches:")) {
                    cost.involuntary = Long.parseLong(line.replaceAll("\\D", ""));
                }
            }
        } catch (IOException | NumberFormatException unreadable) {
            // As above.
        }
        return cost;
    }

    ThreadCost since(ThreadCost before) {
        ThreadCost cost = new ThreadCost();
        cost.userNs = userNs - before.userNs;
        cost.systemNs = systemNs - before.systemNs;
        cost.voluntary = voluntary - before.voluntary;
        cost.involuntary = involuntary - before.involuntary;
        return cost;
    }
}
