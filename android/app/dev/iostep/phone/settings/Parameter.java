package dev.iostep.phone.settings;

import dev.iostep.phone.R;

/**
 * What can be set: each with its place on the screen, its name in the preferences, its value without
 * a setting and the values that it takes. Defaults of Mobibench's tests are those of
 * {@code iostep bench --profile mobibench}; a test compares them with what that does.
 */
public enum Parameter {
    THREADS(Group.FILE, R.string.set_threads, 1, 1, 100),
    WRITE_SIZE(Group.FILE, R.string.set_write_size, "10MiB"),
    READ_SIZE(Group.FILE, R.string.set_read_size, "32MiB"),
    RECORD(Group.FILE, R.string.set_record, "4KiB"),
    TRANSFER(Group.FILE, R.string.set_transfer, "direct", "buffered", "direct", "dontcache", "mmap"),
    SYNC(Group.FILE, R.string.set_sync, "none", "none", "osync", "odsync", "rwf-dsync", "fsync",
            "fdatasync", "sync-file-range", "msync", "msync-async"),
    PAYLOAD(Group.FILE, R.string.set_payload, "incompressible", "incompressible", "constant"),
    OVERLAP(Group.FILE, R.string.set_overlap, 0, 0, 100),

    TRANSACTIONS(Group.SQLITE, R.string.set_transactions, 100, 1, 1_000_000),
    JOURNAL(Group.SQLITE, R.string.set_journal, "truncate", "delete", "truncate", "persist", "wal",
            "memory", "off", "waldio"),
    SYNCHRONOUS(Group.SQLITE, R.string.set_synchronous, "full", "off", "normal", "full", "extra"),
    TABLES(Group.SQLITE, R.string.set_tables, 1, 1, 20),
    DATABASES(Group.SQLITE, R.string.set_databases, 1, 1, 20),
    STATEMENTS(Group.SQLITE, R.string.set_statements, 1, 1, 1000),
    ROW(Group.SQLITE, R.string.set_row, "100"),
    KEYS(Group.SQLITE, R.string.set_keys, "of-the-test", "of-the-test", "sequential", "random"),
    SQLITE_THREADS(Group.SQLITE, R.string.set_sqlite_threads, 1, 1, 100),
    THINK(Group.SQLITE, R.string.set_think, 0, 0, 10_000),
    VENDOR(Group.SQLITE, R.string.set_vendor, "both", "both", "own", "phone"),

    SECONDS(Group.RANKED, R.string.set_seconds, 12, 1, 600),
    REPEATS(Group.RANKED, R.string.set_repeats, 5, 1, 100),

    CAP(Group.WEAR, R.string.set_cap, "64GiB"),

    SERVER(Group.UPLOAD, R.string.set_server);

    /** A part of the setting screen. */
    public enum Group {
        FILE(R.string.group_file),
        SQLITE(R.string.group_sqlite),
        RANKED(R.string.group_ranked),
        WEAR(R.string.group_wear),
        UPLOAD(R.string.group_upload);

        public final int title;

        Group(int title) {
            this.title = title;
        }
    }

    /** What kind of value it is. */
    public enum Kind { NUMBER, SIZE, CHOICE, ADDRESS }

    public final Group group;
    /** The resource of its name on the screen. */
    public final int title;
    public final Kind kind;
    public final String fallback;
    /** Of a choice. */
    public final String[] choices;
    /** Of a number. */
    public final long least;
    public final long most;

    Parameter(Group group, int title, long fallback, long least, long most) {
        this(group, title, Kind.NUMBER, Long.toString(fallback), new String[0], least, most);
    }

    Parameter(Group group, int title, String fallback) {
        this(group, title, Kind.SIZE, fallback, new String[0], 1, 1L << 40);
    }

    Parameter(Group group, int title, String fallback, String... choices) {
        this(group, title, Kind.CHOICE, fallback, choices, 0, 0);
    }

    Parameter(Group group, int title) {
        this(group, title, Kind.ADDRESS, "", new String[0], 0, 0);
    }

    Parameter(Group group, int title, Kind kind, String fallback, String[] choices, long least,
            long most) {
        this.group = group;
        this.title = title;
        this.kind = kind;
        this.fallback = fallback;
        this.choices = choices;
        this.least = least;
        this.most = most;
    }

    /** Its name in the preferences, which stays what it is: values of people hang on it. */
    public String key() {
        return name().toLowerCase(java.util.Locale.ROOT);
    }

    /** True for a text that is a value of it. */
    public boolean takes(String text) {
        switch (kind) {
            case NUMBER:
                try {
                    long value = Long.parseLong(text);
                    return value >= least && value <= most;
                } catch (NumberFormatException none) {
                    return false;
                }
            case SIZE:
                long bytes = Size.parse(text);
                return bytes >= least && bytes <= most;
            case CHOICE:
                return java.util.Arrays.asList(choices).contains(text);
            default:
                return text.isEmpty() || Address.isServer(text);
        }
    }
}
