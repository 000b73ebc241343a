package dev.iostep.phone.measure;

import android.database.Cursor;
import android.database.SQLException;
import android.database.sqlite.SQLiteDatabase;
import android.database.sqlite.SQLiteStatement;

import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

import dev.iostep.phone.history.Transactions;

/** A thread of a run of Android's SQLite: its databases, its transactions, what they took. */
final class PhoneWorker extends Thread {
    private enum Operation { INSERT, UPDATE, DELETE }

    /** Is told of each row that was made before the start. */
    interface Maker {
        /** False if no more are wanted. */
        boolean goesOn();
    }

    private final Operation operation;
    private final long transactions;
    private final int tables;
    private final int databases;
    private final int statements;
    private final int recordBytes;
    private final long thinkNs;
    private final Stop stop;
    private final SQLiteDatabase database;
    private final List<SQLiteStatement> prepared = new ArrayList<>();
    /** In random order; null where they come in their own. */
    private long[] keys;
    private long rows;
    private final Random random;

    /** What it did, for whoever joined it; the two numbers also meanwhile. */
    final Histogram total = new Histogram();
    final Histogram commits = new Histogram();
    final PhoneSeconds seconds = new PhoneSeconds();
    volatile long done;
    volatile long endNs;
    long idleNs;
    ThreadCost cost = new ThreadCost();
    String attempt;
    String failure;
    /** True if the app had too little memory for it. */
    boolean outOfMemory;
    private volatile long startNs;

    /** Makes its databases. */
    PhoneWorker(JSONObject job, File place, int thread, Stop stop, Maker maker)
            throws JSONException {
        super("iostep-phone-" + thread);
        operation = Operation.valueOf(job.getString("operation").toUpperCase(java.util.Locale.ROOT));
        transactions = job.getLong("transactions");
        tables = job.getInt("tables");
        databases = job.getInt("databases");
        statements = job.getInt("statements");
        recordBytes = job.getInt("record_bytes");
        thinkNs = job.getJSONObject("pace").getLong("think_ns");
        random = new Random(job.getLong("seed") + thread);
        this.stop = stop;
        // With collators Android makes a table at once, and the size of pages stays what it is.
        database = SQLiteDatabase.openDatabase(file(place, thread, 0).getPath(), null,
                SQLiteDatabase.CREATE_IF_NECESSARY | SQLiteDatabase.NO_LOCALIZED_COLLATORS);
        try {
            attach(place, thread);
            for (int each = 0; each < databases; each++) {
                set(schema(each) + ".page_size",
                        job.isNull("page_bytes") ? "4096" : job.getString("page_bytes"));
                set(schema(each) + ".journal_mode", job.getString("journal"));
                set(schema(each) + ".synchronous", job.getString("synchronous"));
            }
            if (!makeTables(job.getLong("rows"), maker)) {
                return;
            }
            boolean shuffled = job.getString("keys").equals("random");
            prepare(operation == Operation.INSERT ? transactions * statements : job.getLong("rows"),
                    shuffled);
        } catch (SQLException | OutOfMemoryError error) {
            database.close();
            throw error;
        }
    }

    /** Bytes of a page, of each of its databases. */
    List<String> pageSizes() {
        List<String> sizes = new ArrayList<>();
        for (int each = 0; each < databases; each++) {
            sizes.add(PhoneSqlite.value(database, "PRAGMA " + schema(each) + ".page_size"));
        }
        return sizes;
    }

    private static File file(File place, int thread, int number) {
        return new File(place, "thread-" + thread + "-" + number + ".db");
    }

    private static String schema(int number) {
        return number == 0 ? "main" : "d" + number;
    }

    private void attach(File place, int thread) {
        for (int each = 1; each < databases; each++) {
            database.execSQL("ATTACH DATABASE ? AS " + schema(each),
                    new Object[] {file(place, thread, each).getPath()});
        }
    }

    /** By a query, since some pragmas answer with a row, which execSQL refuses. */
    private void set(String pragma, String value) {
        try (Cursor rows = database.rawQuery("PRAGMA " + pragma + " = " + value, null)) {
            rows.moveToFirst();
        }
    }

    /** False if that was ended early. */
    private boolean makeTables(long rows, Maker maker) {
        for (int each = 0; each < databases; each++) {
            for (int table = 0; table < tables; table++) {
                database.execSQL("CREATE TABLE " + schema(each) + ".t" + table
                        + " (key INTEGER PRIMARY KEY, value BLOB NOT NULL)");
                SQLException failed = null;
                database.beginTransaction();
                try (SQLiteStatement insert = database.compileStatement("INSERT INTO "
                        + schema(each) + ".t" + table + " (key, value) VALUES (?1, ?2)")) {
                    for (long key = 0; key < rows; key++) {
                        insert.bindLong(1, key);
                        insert.bindBlob(2, value());
                        insert.executeInsert();
                        if (!maker.goesOn()) {
                            return false;
                        }
                    }
                    database.setTransactionSuccessful();
                } catch (SQLException error) {
                    failed = error;
                    throw error;
                } finally {
                    Transactions.end(database, failed);
                }
            }
        }
        return true;
    }

    private byte[] value() {
        byte[] value = new byte[recordBytes];
        random.nextBytes(value);
        return value;
    }

    private void prepare(long rows, boolean shuffled) {
        for (int each = 0; each < databases; each++) {
            for (int table = 0; table < tables; table++) {
                String name = schema(each) + ".t" + table;
                String sql;
                switch (operation) {
                    case INSERT:
                        sql = "INSERT INTO " + name + " (key, value) VALUES (?1, ?2)";
                        break;
                    case UPDATE:
                        sql = "UPDATE " + name + " SET value = ?2 WHERE key = ?1";
                        break;
                    default:
                        sql = "DELETE FROM " + name + " WHERE key = ?1";
                        break;
                }
                prepared.add(database.compileStatement(sql));
            }
        }
        this.rows = rows;
        if (shuffled) {
            keys = shuffled(rows);
        }
    }

    private long[] shuffled(long rows) {
        long[] order = new long[(int) rows];
        for (int at = 0; at < order.length; at++) {
            int other = random.nextInt(at + 1);
            order[at] = order[other];
            order[other] = at;
        }
        return order;
    }

    private long key(long number) {
        return keys == null ? number % rows : keys[(int) (number % rows)];
    }

    void start(long atNs) {
        startNs = atNs;
        start();
    }

    @Override
    public void run() {
        ThreadCost before = ThreadCost.now();
        try {
            while (done < transactions && !stop.isAsked()) {
                transaction();
                think();
            }
        } catch (SQLException error) {
            failure = error.getMessage();
        } catch (OutOfMemoryError error) {
            outOfMemory = true;
            failure = error.toString();
        } catch (RuntimeException | Error error) {
            // Thrown on, it would end the app with all that was measured.
            failure = error.toString();
        } finally {
            cost = ThreadCost.now().since(before);
            if (endNs == 0) {
                endNs = System.nanoTime();
            }
        }
    }

    /** A single statement runs without BEGIN and COMMIT, as an app's would. */
    private void transaction() {
        long began = System.nanoTime();
        boolean alone = prepared.size() * statements == 1;
        if (alone) {
            attempt = "a statement";
            step(prepared.get(0), done);
        } else {
            attempt = "BEGIN";
            database.beginTransactionNonExclusive();
            SQLException failed = null;
            try {
                attempt = "a statement";
                for (int each = 0; each < statements; each++) {
                    for (SQLiteStatement statement : prepared) {
                        step(statement, done * statements + each);
                    }
                }
                database.setTransactionSuccessful();
                attempt = "COMMIT";
            } catch (SQLException error) {
                failed = error;
                throw error;
            } finally {
                long commit = System.nanoTime();
                Transactions.end(database, failed);
                commits.record(System.nanoTime() - commit);
            }
        }
        endNs = System.nanoTime();
        total.record(endNs - began);
        long bytes = operation == Operation.DELETE
                ? 0 : (long) recordBytes * prepared.size() * statements;
        seconds.add(endNs - startNs, endNs - began, bytes);
        done++;
    }

    private void step(SQLiteStatement statement, long number) {
        statement.bindLong(1, key(number));
        switch (operation) {
            case INSERT:
                statement.bindBlob(2, value());
                statement.executeInsert();
                break;
            case UPDATE:
                statement.bindBlob(2, value());
                expectOne(statement);
                break;
            default:
                expectOne(statement);
                break;
        }
    }

    /** A statement that finds no row costs nothing and is no transaction. */
    private void expectOne(SQLiteStatement statement) {
        int rows = statement.executeUpdateDelete();
        if (rows != 1) {
            throw new SQLException(rows + " rows were changed, expected 1");
        }
    }

    private void think() {
        if (thinkNs == 0) {
            return;
        }
        long before = System.nanoTime();
        try {
            Thread.sleep(thinkNs / 1_000_000);
        } catch (InterruptedException interrupted) {
            interrupt();
        }
        idleNs += System.nanoTime() - before;
    }

    /** What this library says of itself, with the pragmas that the engine's said, too. */
    void describe(JSONObject sqlite) throws JSONException {
        JSONArray settings = sqlite.getJSONArray("settings");
        JSONArray own = new JSONArray();
        for (int at = 0; at < settings.length(); at++) {
            String name = settings.getJSONArray(at).getString(0);
            own.put(new JSONArray().put(name)
                    .put(PhoneSqlite.value(database, "PRAGMA " + name)));
        }
        JSONArray options = new JSONArray();
        try (Cursor rows = database.rawQuery("PRAGMA compile_options", null)) {
            while (rows.moveToNext()) {
                options.put(rows.getString(0));
            }
        }
        sqlite.put("path", PhoneSqlite.LIBRARY)
                .put("version", PhoneSqlite.value(database, "SELECT sqlite_version()"))
                .put("source_id", PhoneSqlite.value(database, "SELECT sqlite_source_id()"))
                .put("compile_options", options)
                .put("settings", own);
    }

    void close() {
        for (SQLiteStatement statement : prepared) {
            statement.close();
        }
        database.close();
    }
}
