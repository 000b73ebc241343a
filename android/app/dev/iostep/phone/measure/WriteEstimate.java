package dev.iostep.phone.measure;

import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;

/**
 * What a test will write, about: flash wears, so it is said before. Files are counted to the byte;
 * SQLite by its pages, journals with them; what ends by time, by the rate that this phone had.
 */
public final class WriteEstimate {
    /** Bytes of a page, and of a block of the filesystem. */
    private static final long PAGE = 4096;
    /** Pages of a transaction beside those of its rows: the journal's header, and the filesystem's
     * own log, by what a commit of ext4 and f2fs takes. */
    private static final long PAGES_OF_COMMIT = 6;
    /** Operations a second of a phone that was not measured yet; a fast one of today. */
    private static final double RATE = 4000;
    /** Bytes of the file of a ranked test: the engine's default. */
    private static final long RANKED_FILE = 64L << 20;

    /** How fast this phone was. */
    public interface Rates {
        /** Operations a second of the latest run, or 0 where there is none. */
        double of(Workload workload);
    }

    private final Rates rates;

    public WriteEstimate(Rates rates) {
        this.rates = rates;
    }

    /** Bytes. */
    public long of(Workload workload, Settings settings) {
        switch (workload.kind) {
            case FILE:
                long file = Workload.fileBytes(settings, workload.writes())
                        * settings.number(Parameter.THREADS);
                // Made before it is overwritten or read.
                return workload.writes() ? 2 * file : file;
            case SQLITE:
                return ofSqlite(workload, settings);
            default:
                return ofRanked(workload, settings);
        }
    }

    private long ofSqlite(Workload workload, Settings settings) {
        long databases = settings.number(Parameter.DATABASES);
        long tables = settings.number(Parameter.TABLES);
        long row = settings.bytes(Parameter.ROW);
        long statements = settings.number(Parameter.STATEMENTS);
        long transactions = settings.number(Parameter.TRANSACTIONS)
                * settings.number(Parameter.SQLITE_THREADS);
        long rowPages = 1 + row / PAGE;
        // Each page once to the journal and once to the database.
        long pages = databases * (2 * tables * statements * rowPages + PAGES_OF_COMMIT);
        long before = workload == Workload.INSERT
                ? 0 : transactions * statements * tables * databases * (row + 16);
        return transactions * pages * PAGE + before;
    }

    private long ofRanked(Workload workload, Settings settings) {
        long repeats = settings.number(Parameter.REPEATS);
        if (!workload.writes()) {
            return RANKED_FILE;
        }
        double seconds = (double) settings.number(Parameter.SECONDS) * repeats;
        double rate = rates.of(workload);
        double operations = seconds * (rate > 0 ? rate : RATE);
        long each = workload.isSqlite() ? PAGE * (2 + PAGES_OF_COMMIT) : 2 * PAGE;
        long files = workload.isSqlite() ? 0 : RANKED_FILE * repeats;
        return files + (long) operations * each;
    }
}
