package dev.iostep.phone.history;

/** The tables of the history, as steps from each version to the next: what was kept stays. */
final class Schema {
    /** Step N makes version N + 1 of version N; a published step is never changed. */
    static final String[][] STEPS = {
        {
            "CREATE TABLE run (id INTEGER PRIMARY KEY AUTOINCREMENT, start_ms INTEGER NOT NULL,"
                    + " test TEXT NOT NULL, by TEXT NOT NULL, state TEXT NOT NULL,"
                    + " storage TEXT NOT NULL, model TEXT NOT NULL, rate REAL NOT NULL DEFAULT 0,"
                    + " bytes_rate REAL NOT NULL DEFAULT 0, result TEXT, conditions TEXT,"
                    + " complaint TEXT)",
            "CREATE INDEX run_by_test ON run (test, by, state)",
            // Over the app's life, also of runs that were deleted.
            "CREATE TABLE written (bytes INTEGER NOT NULL)",
            "INSERT INTO written VALUES (0)",
        },
        {
            "CREATE TABLE upload (run INTEGER PRIMARY KEY, server TEXT NOT NULL,"
                    + " state TEXT NOT NULL, id TEXT, token TEXT, test TEXT, answer TEXT)",
        },
        {
            // What of the bytes written is this run's.
            "ALTER TABLE run ADD COLUMN booked INTEGER NOT NULL DEFAULT 0",
            // Null in runs of before, which have a storage by its name alone.
            "ALTER TABLE run ADD COLUMN volume TEXT",
        },
    };

    private Schema() {}
}
