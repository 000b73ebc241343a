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

    /** Bytes of all of it. */
    public long of(Workload workload, Settings settings) {
        return plus(before(workload, settings),
                times(operations(workload, settings), each(workload, settings)));
    }

    /** Bytes that are written to make ready. */
    public long before(Workload workload, Settings settings) {
        switch (workload.kind) {
            case FILE:
                // Made before it is overwritten or read.
                return files(workload, settings);
            case SQLITE:
                return workload == Workload.INSERT ? 0 : rows(settings);
            default:
                return workload.isSqlite() ? 0 : workload.writes()
                        ? RANKED_FILE * settings.number(Parameter.REPEATS) : RANKED_FILE;
        }
    }

    /** Bytes that an operation writes. */
    public long each(Workload workload, Settings settings) {
        if (!workload.writes()) {
            return 0;
        }
        switch (workload.kind) {
            case FILE:
                return settings.bytes(Parameter.RECORD);
            case SQLITE:
                // Each page once to the journal and once to the database.
                long pages = plus(times(2, statements(settings),
                        1 + settings.bytes(Parameter.ROW) / PAGE), PAGES_OF_COMMIT);
                return times(settings.number(Parameter.DATABASES), pages, PAGE);
            default:
                return workload.isSqlite() ? PAGE * (2 + PAGES_OF_COMMIT) : 2 * PAGE;
        }
    }

    /** Bytes that it takes of the storage at once. */
    public long room(Workload workload, Settings settings) {
        switch (workload.kind) {
            case FILE:
                return files(workload, settings);
            case SQLITE:
                // A journal or a log may hold as much as the database.
                return times(2, rows(settings));
            default:
                return workload.isSqlite() ? of(workload, settings) : RANKED_FILE;
        }
    }

    private long operations(Workload workload, Settings settings) {
        switch (workload.kind) {
            case FILE:
                return files(workload, settings) / settings.bytes(Parameter.RECORD);
            case SQLITE:
                return settings.number(Parameter.TRANSACTIONS)
                        * settings.number(Parameter.SQLITE_THREADS);
            default:
                double rate = rates.of(workload);
                return (long) (settings.number(Parameter.SECONDS)
                        * settings.number(Parameter.REPEATS) * (rate > 0 ? rate : RATE));
        }
    }

    private static long files(Workload workload, Settings settings) {
        return Workload.fileBytes(settings, workload.writes())
                * settings.number(Parameter.THREADS);
    }

    /** Statements of a transaction to one database. */
    private static long statements(Settings settings) {
        return settings.number(Parameter.TABLES) * settings.number(Parameter.STATEMENTS);
    }

    /** Bytes of the rows of a test of SQLite. */
    private static long rows(Settings settings) {
        return times(settings.number(Parameter.TRANSACTIONS),
                settings.number(Parameter.SQLITE_THREADS), statements(settings),
                settings.number(Parameter.DATABASES), settings.bytes(Parameter.ROW) + 16);
    }

    /** What is too much to be counted is the most that can be: it passes no cap. */
    static long plus(long first, long second) {
        long sum = first + second;
        return sum < 0 ? Long.MAX_VALUE : sum;
    }

    private static long times(long... factors) {
        long product = 1;
        for (long factor : factors) {
            if (factor != 0 && product > Long.MAX_VALUE / factor) {
                return Long.MAX_VALUE;
            }
            product *= factor;
        }
        return product;
    }
}
