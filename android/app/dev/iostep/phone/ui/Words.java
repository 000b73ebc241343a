package dev.iostep.phone.ui;

import android.content.Context;
import android.text.format.DateUtils;

import org.json.JSONObject;

import java.text.NumberFormat;
import java.util.Locale;

import dev.iostep.phone.R;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.measure.Measuring;
import dev.iostep.phone.measure.Progress;
import dev.iostep.phone.measure.Step;
import dev.iostep.phone.measure.Storage;
import dev.iostep.phone.measure.Workload;

/** Numbers and names in the person's language. */
public final class Words {
    private Words() {}

    /** In the units of the settings, which are those of the engine. */
    public static String bytes(Context context, long bytes) {
        int[] units = {R.string.b, R.string.kib, R.string.mib, R.string.gib};
        int unit = 0;
        double value = bytes;
        while (value >= 1024 && unit < units.length - 1) {
            value /= 1024;
            unit++;
        }
        return context.getString(units[unit], number(context, value));
    }

    /** With as many digits as mean something. */
    public static String number(Context context, double value) {
        NumberFormat format = NumberFormat.getNumberInstance(locale(context));
        format.setMaximumFractionDigits(value >= 100 ? 0 : value >= 10 ? 1 : 2);
        return format.format(value);
    }

    public static String percent(Context context, double share) {
        NumberFormat format = NumberFormat.getPercentInstance(locale(context));
        format.setMaximumFractionDigits(1);
        return format.format(share);
    }

    /** A latency. */
    public static String duration(Context context, double ns) {
        if (ns < 1e3) {
            return context.getString(R.string.ns, number(context, ns));
        }
        if (ns < 1e6) {
            return context.getString(R.string.us, number(context, ns / 1e3));
        }
        if (ns < 1e9) {
            return context.getString(R.string.ms, number(context, ns / 1e6));
        }
        return context.getString(R.string.s, number(context, ns / 1e9));
    }

    private static Locale locale(Context context) {
        return context.getResources().getConfiguration().getLocales().get(0);
    }

    /** The name of a test and of who did it, as {@code SQLite insert, phone's SQLite}. */
    public static String test(Context context, Run run) {
        return test(context, run.test, run.by);
    }

    private static String test(Context context, String test, String by) {
        Workload workload = Workload.of(test);
        String name = workload == null ? test : context.getString(workload.title);
        if (workload == null || !workload.isSqlite()) {
            return name;
        }
        boolean phone = by.equals(Step.By.PHONE.name());
        int who = phone ? R.string.by_phone : R.string.by_engine;
        return context.getString(R.string.test_by, name, context.getString(who));
    }

    /** What was reached: of files in order as bytes, of all else as operations a second. */
    public static String figure(Context context, Run run) {
        if (!run.isMeasured()) {
            return context.getString(R.string.no_figure);
        }
        Workload workload = Workload.of(run.test);
        if (workload == Workload.SEQ_READ || workload == Workload.SEQ_WRITE
                || workload == Workload.RANKED_STREAM) {
            return context.getString(R.string.per_second, bytes(context, (long) run.bytesRate));
        }
        return rate(context, workload != null && workload.isSqlite(), run.rate);
    }

    public static String rate(Context context, boolean transactions, double rate) {
        return context.getString(transactions ? R.string.tps : R.string.iops,
                number(context, rate));
    }

    public static String state(Context context, Run run) {
        String when = DateUtils.formatDateTime(context, run.startMs,
                DateUtils.FORMAT_SHOW_DATE | DateUtils.FORMAT_SHOW_TIME
                        | DateUtils.FORMAT_ABBREV_ALL);
        return context.getString(R.string.when_state, when,
                Storage.name(context, run),
                context.getString(stateName(run.state)));
    }

    static int stateName(String state) {
        switch (state) {
            case Run.COMPLETE:
                return R.string.state_complete;
            case Run.PARTIAL:
                return R.string.state_partial;
            case Run.DIED:
                return R.string.state_died;
            case Run.RUNNING:
                return R.string.state_running;
            default:
                return R.string.state_failed;
        }
    }

    /** Where a run is, and what is left. */
    public static String progress(Context context, Measuring measuring) {
        Step step = measuring.step();
        if (step == null) {
            return "";
        }
        String test = test(context, step.workload.key(), step.by.name());
        Progress progress = measuring.progressNow();
        String phase;
        if (progress == null || !progress.measuring) {
            phase = context.getString(R.string.preparing);
        } else if (progress.runs > 1) {
            phase = context.getString(R.string.repetition, progress.run, progress.runs);
        } else {
            phase = percent(context, progress.done);
        }
        String place = context.getString(R.string.progress, measuring.number(), measuring.count(),
                test, phase);
        long left = measuring.secondsLeft();
        return left < 0 ? place : context.getString(R.string.progress_left, place,
                DateUtils.formatElapsedTime(left));
    }

    /** A warning in words, with what to do about it. */
    static String warning(Context context, JSONObject warning) {
        String kind = warning.optString("kind");
        for (Warning each : Warning.values()) {
            if (each.name().toLowerCase(Locale.ROOT).equals(kind)) {
                return context.getString(each.words);
            }
        }
        // One of a newer engine is better read raw than not at all.
        return kind.replace('_', ' ');
    }

    /** The name of a measure of the engine: of a step's percentile, or of the whole. */
    static String measure(Context context, String name) {
        switch (name) {
            case "operations_per_second":
                return context.getString(R.string.measure_rate);
            case "bytes_per_second":
                return context.getString(R.string.measure_bytes);
            case "time_per_operation_ns":
                return context.getString(R.string.measure_time);
            case "device_written_bytes_per_operation":
                return context.getString(R.string.measure_written);
            case "device_read_bytes_per_operation":
                return context.getString(R.string.measure_read);
            case "device_flushes_per_operation":
                return context.getString(R.string.measure_flushes);
            case "cpu_ns_per_operation":
                return context.getString(R.string.measure_cpu);
            case "context_switches_per_operation":
                return context.getString(R.string.measure_switches);
            default:
                int at = name.lastIndexOf("_p");
                return at < 0 || !name.endsWith("_ns") ? name.replace('_', ' ')
                        : step(context, name.substring(0, at)) + " "
                                + name.substring(at + 1, name.length() - "_ns".length());
        }
    }

    /** The name of a part of an operation. */
    static String step(Context context, String name) {
        switch (name) {
            case "total":
                return context.getString(R.string.step_total);
            case "read":
                return context.getString(R.string.step_read);
            case "write":
                return context.getString(R.string.step_write);
            case "sync":
                return context.getString(R.string.step_sync);
            case "end_sync":
                return context.getString(R.string.step_end_sync);
            case "transaction":
                return context.getString(R.string.step_transaction);
            case "commit":
                return context.getString(R.string.step_commit);
            case "checkpoint":
                return context.getString(R.string.step_checkpoint);
            default:
                return name.replace('_', ' ');
        }
    }

    /** The kinds of docs/format-bench.md that a phone can have. */
    private enum Warning {
        CPU_GOVERNOR(R.string.warn_cpu_governor),
        ON_BATTERY(R.string.warn_on_battery),
        BATTERY_SAVER(R.string.warn_battery_saver),
        HOT(R.string.warn_hot),
        UNREADABLE(R.string.warn_unreadable),
        CALLS_REFUSED(R.string.warn_calls_refused),
        FILESYSTEM_NEARLY_FULL(R.string.warn_nearly_full),
        COMPRESSION(R.string.warn_compression),
        IN_MEMORY(R.string.warn_in_memory),
        STEAL(R.string.warn_steal),
        SWAPPING(R.string.warn_swapping),
        BUSY_MACHINE(R.string.warn_busy_machine),
        MORE_THREADS_THAN_CPUS(R.string.warn_more_threads),
        FITS_IN_PAGE_CACHE(R.string.warn_fits_in_page_cache),
        TOO_SHORT(R.string.warn_too_short),
        NOT_STEADY(R.string.warn_not_steady),
        STOCK_LOG(R.string.warn_stock_log);

        final int words;

        Warning(int words) {
            this.words = words;
        }
    }
}
