package dev.iostep.phone.settings;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Sizes as people write them: {@code 4KiB}, {@code 10 MiB}, {@code 100}. */
public final class Size {
    private static final Pattern FORM = Pattern.compile("(\\d{1,12}) ?(k|m|g|kib|mib|gib|b)?");

    private Size() {}

    /** The bytes, or -1 for what is no size. */
    public static long parse(String text) {
        Matcher found = FORM.matcher(text.trim().toLowerCase(Locale.ROOT));
        if (!found.matches()) {
            return -1;
        }
        long number = Long.parseLong(found.group(1));
        String unit = found.group(2) == null ? "b" : found.group(2).substring(0, 1);
        int shift = 10 * "bkmg".indexOf(unit);
        return number > Long.MAX_VALUE >> shift ? -1 : number << shift;
    }
}
