package dev.iostep.phone.measure;

import android.content.Context;

import java.io.File;
import java.util.List;

import dev.iostep.phone.R;
import dev.iostep.phone.ui.Words;

/** Why a run is not begun, in words that say what to do; nothing is the answer if it may begin. */
public final class Refusal {
    /** Percent of a battery below which a run may end in a phone that is switched off. */
    static final int LEAST_BATTERY = 20;
    /** What is left free meanwhile: a full filesystem is slow, and other apps need room, too. */
    static final long LEAST_FREE = 1L << 30;

    private Refusal() {}

    /** {@code written} and {@code cap} are bytes over the app's life. */
    public static String of(Context context, Conditions conditions, File directory,
            List<Step> steps, long written, long cap) {
        if (steps.isEmpty()) {
            return context.getString(R.string.refuse_nothing);
        }
        if (conditions.battery >= 0 && conditions.battery < LEAST_BATTERY) {
            return context.getString(R.string.refuse_battery, conditions.battery, LEAST_BATTERY);
        }
        if (!directory.isDirectory() && !directory.mkdirs()) {
            return context.getString(R.string.refuse_storage, directory.getPath());
        }
        long free = directory.getUsableSpace();
        long needed = WriteEstimate.plus(LEAST_FREE, room(steps));
        if (free < needed) {
            return context.getString(R.string.refuse_free, Words.bytes(context, free),
                    Words.bytes(context, needed), Words.bytes(context, LEAST_FREE));
        }
        long bytes = bytes(steps);
        if (bytes > cap - written) {
            return context.getString(R.string.refuse_cap, Words.bytes(context, bytes),
                    Words.bytes(context, written), Words.bytes(context, cap));
        }
        return null;
    }

    /** What the steps will write, about. */
    public static long bytes(List<Step> steps) {
        long bytes = 0;
        for (Step step : steps) {
            bytes = WriteEstimate.plus(bytes, step.bytes);
        }
        return bytes;
    }

    /** What the greatest of them takes at once: each removes what it made. */
    private static long room(List<Step> steps) {
        long room = 0;
        for (Step step : steps) {
            room = Math.max(room, step.room);
        }
        return room;
    }
}
