package dev.iostep.phone.measure;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

import dev.iostep.phone.R;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;

/**
 * A test, and the arguments of {@code iostep bench} for it. The first seven are Mobibench's, in its
 * order; the others are those whose medians are ranked, with nothing but a test's own defaults.
 */
public enum Workload {
    SEQ_WRITE(R.string.test_seq_write, Kind.FILE, "write"),
    SEQ_READ(R.string.test_seq_read, Kind.FILE, "read"),
    RAND_WRITE(R.string.test_rand_write, Kind.FILE, "random-write"),
    RAND_READ(R.string.test_rand_read, Kind.FILE, "random-read"),
    INSERT(R.string.test_insert, Kind.SQLITE, "insert"),
    UPDATE(R.string.test_update, Kind.SQLITE, "update"),
    DELETE(R.string.test_delete, Kind.SQLITE, "delete"),

    RANKED_WRITE(R.string.test_ranked_write, Kind.RANKED, "file", "--access=random-write",
            "--sync=fdatasync"),
    RANKED_READ(R.string.test_ranked_read, Kind.RANKED, "file", "--access=random-read",
            "--transfer=direct"),
    RANKED_STREAM(R.string.test_ranked_stream, Kind.RANKED, "file", "--access=read",
            "--transfer=direct", "--record=512KiB"),
    RANKED_DELETE(R.string.test_ranked_sqlite, Kind.RANKED, "sqlite"),
    RANKED_WAL(R.string.test_ranked_wal, Kind.RANKED, "sqlite", "--journal=wal");

    /** What it measures. */
    public enum Kind { FILE, SQLITE, RANKED }

    /** The resource of its name. */
    public final int title;
    public final Kind kind;
    /** What the engine calls it, or for the ranked ones all arguments. */
    private final String[] words;

    Workload(int title, Kind kind, String... words) {
        this.title = title;
        this.kind = kind;
        this.words = words;
    }

    /** True if the measured part writes. */
    public boolean writes() {
        return this != SEQ_READ && this != RAND_READ && this != RANKED_READ && this != RANKED_STREAM;
    }

    /** How much of what it writes is written before the measured part: 0 to 1, about. */
    double preparing() {
        if (isSqlite()) {
            return 0;
        }
        // A file is written from end to end before it is overwritten.
        return writes() ? 0.5 : 1;
    }

    /** True if it runs SQLite. */
    public boolean isSqlite() {
        return kind == Kind.SQLITE || words[0].equals("sqlite");
    }

    /** What stands behind {@code iostep bench}, but for the directory. */
    public List<String> arguments(Settings settings) {
        switch (kind) {
            case FILE:
                return ofFile(settings);
            case SQLITE:
                return ofSqlite(settings);
            default:
                List<String> arguments = new ArrayList<>(Arrays.asList(words));
                arguments.add("--time=" + settings.text(Parameter.SECONDS));
                arguments.add("--repeat=" + settings.text(Parameter.REPEATS));
                return arguments;
        }
    }

    /** Bytes of each thread's file: threads share the size, and only whole records count. */
    public static long fileBytes(Settings settings, boolean writes) {
        long size = settings.bytes(writes ? Parameter.WRITE_SIZE : Parameter.READ_SIZE);
        long record = settings.bytes(Parameter.RECORD);
        return size / settings.number(Parameter.THREADS) / record * record;
    }

    private List<String> ofFile(Settings settings) {
        List<String> arguments = new ArrayList<>();
        arguments.add("file");
        arguments.add("--access=" + words[0]);
        arguments.add("--size=" + fileBytes(settings, writes()));
        arguments.add("--record=" + settings.bytes(Parameter.RECORD));
        arguments.add("--threads=" + settings.text(Parameter.THREADS));
        arguments.add("--payload=" + settings.text(Parameter.PAYLOAD));
        if (words[0].startsWith("random")) {
            arguments.add("--overlap=" + settings.text(Parameter.OVERLAP));
        }
        if (writes()) {
            arguments.add("--transfer=" + settings.text(Parameter.TRANSFER));
            arguments.add("--sync=" + settings.text(Parameter.SYNC));
            // The last sync is within the time.
            arguments.add("--end-sync");
        } else {
            arguments.add("--transfer=direct");
        }
        return arguments;
    }

    private List<String> ofSqlite(Settings settings) {
        List<String> arguments = new ArrayList<>();
        arguments.add("sqlite");
        arguments.add("--operation=" + words[0]);
        arguments.add("--page-size=4096");
        add(arguments, settings, "transactions", Parameter.TRANSACTIONS);
        add(arguments, settings, "journal", Parameter.JOURNAL);
        add(arguments, settings, "synchronous", Parameter.SYNCHRONOUS);
        add(arguments, settings, "tables", Parameter.TABLES);
        add(arguments, settings, "databases", Parameter.DATABASES);
        add(arguments, settings, "statements", Parameter.STATEMENTS);
        add(arguments, settings, "threads", Parameter.SQLITE_THREADS);
        arguments.add("--record=" + settings.bytes(Parameter.ROW));
        arguments.add("--think=" + settings.text(Parameter.THINK) + "ms");
        String keys = settings.text(Parameter.KEYS);
        if (keys.equals("of-the-test")) {
            keys = this == UPDATE ? "random" : "sequential";
        }
        arguments.add("--keys=" + keys);
        if (this == UPDATE) {
            // As many as are updated, so that each is updated once.
            long rows = settings.number(Parameter.TRANSACTIONS)
                    * settings.number(Parameter.STATEMENTS);
            arguments.add("--rows=" + rows);
        }
        return arguments;
    }

    private static void add(List<String> arguments, Settings settings, String flag,
            Parameter parameter) {
        arguments.add("--" + flag + "=" + settings.text(parameter));
    }

    /** Its name where programs read it. */
    public String key() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** The one of a name, or null for a name of another version. */
    public static Workload of(String key) {
        for (Workload workload : values()) {
            if (workload.key().equals(key)) {
                return workload;
            }
        }
        return null;
    }
}
