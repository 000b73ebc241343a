package dev.iostep.phone.history;

import android.content.ContentValues;
import android.content.Context;
import android.database.Cursor;
import android.database.DatabaseUtils;
import android.database.SQLException;
import android.database.sqlite.SQLiteDatabase;
import android.database.sqlite.SQLiteOpenHelper;

import org.json.JSONException;
import org.json.JSONObject;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import dev.iostep.phone.measure.Storage;
import dev.iostep.phone.measure.Texts;

/** Every run of this phone, in a database of the app's own. */
public final class History extends SQLiteOpenHelper {
    static final String FILE = "history.db";
    /** Letters that are read at once. */
    private static final int PART = 250_000;
    private static final String COLUMNS = "id, start_ms, test, by, state, volume, storage, rate,"
            + " bytes_rate, complaint";
    /** Runs on a storage: of its volume, or of its name where nothing else was kept. */
    private static final String ON_STORAGE = "(volume = ? OR volume IS NULL AND storage = ?)";

    private static History only;

    private final Context app;
    private final Damaged damaged;
    /** What the rows of this process's runs began with: a history that is damaged has none of them. */
    private final Map<Long, ContentValues> begun = new ConcurrentHashMap<>();

    private History(Context app) {
        this(app, new Damaged(app));
    }

    private History(Context app, Damaged damaged) {
        super(app, FILE, null, Schema.STEPS.length, damaged);
        this.app = app;
        this.damaged = damaged;
    }

    /** The one of this process: two would wait for each other's locks. */
    public static synchronized History of(Context context) {
        Context app = context.getApplicationContext();
        // Null while the application itself begins.
        if (only == null || (app != null && only.app != app)) {
            only = new History(app == null ? context : app);
        }
        return only;
    }

    @Override
    public void onCreate(SQLiteDatabase database) {
        onUpgrade(database, 0, Schema.STEPS.length);
    }

    @Override
    public SQLiteDatabase getWritableDatabase() {
        return open(super::getWritableDatabase);
    }

    @Override
    public SQLiteDatabase getReadableDatabase() {
        return open(super::getReadableDatabase);
    }

    private interface Opening {
        SQLiteDatabase open();
    }

    /** Older Androids hide a damage in another error, and then tell their handler nothing. */
    private SQLiteDatabase open(Opening opening) {
        try {
            return opening.open();
        } catch (SQLException error) {
            if (!Damaged.isCause(error)) {
                throw error;
            }
            damaged.putAside(app.getDatabasePath(FILE));
            return opening.open();
        }
    }

    /** Android calls it within a transaction, so that a step is there whole or not at all. */
    @Override
    public void onUpgrade(SQLiteDatabase database, int from, int to) {
        for (int step = from; step < to; step++) {
            for (String statement : Schema.STEPS[step]) {
                database.execSQL(statement);
            }
        }
    }

    /** Runs that a process began that is no more; asked when a process begins. The answer is how many. */
    public int findDied() {
        takeUnsaved();
        ContentValues values = new ContentValues();
        values.put("state", Run.DIED);
        return getWritableDatabase().update("run", values, "state = ?",
                new String[] {Run.RUNNING});
    }

    /**
     * A run begins; the answer is its number. {@code bytes} is what it will write, about: counted now,
     * since a process that dies counts nothing any more.
     */
    public long begin(String test, String by, Storage storage, String model, long bytes) {
        ContentValues values = new ContentValues();
        values.put("start_ms", System.currentTimeMillis());
        values.put("test", test);
        values.put("by", by);
        values.put("state", Run.RUNNING);
        values.put("volume", storage.volume);
        values.put("storage", storage.name);
        values.put("model", model);
        values.put("booked", bytes);
        long run = insert(values);
        begun.put(run, values);
        return run;
    }

    private long insert(ContentValues values) {
        return atOnce(database -> {
            long run = database.insertOrThrow("run", null, values);
            count(database, values.getAsLong("booked"));
            return run;
        });
    }

    /** What is written as a whole or not at all. */
    private interface Writing {
        long to(SQLiteDatabase database);
    }

    private long atOnce(Writing writing) {
        SQLiteDatabase database = getWritableDatabase();
        SQLException full = null;
        database.beginTransaction();
        try {
            long answer = writing.to(database);
            database.setTransactionSuccessful();
            return answer;
        } catch (SQLException error) {
            full = error;
            throw error;
        } finally {
            Transactions.end(database, full);
        }
    }

    private static void count(SQLiteDatabase database, long bytes) {
        database.execSQL("UPDATE written SET bytes = bytes + ?", new Object[] {bytes});
    }

    /**
     * A run is over. {@code bytes} is what it wrote, about, where the device counts nothing. Where the
     * history cannot be written, as on a phone that is full, it is put into a file, which
     * {@link #findDied} takes in.
     */
    public void end(long id, String state, String result, String conditions, String complaint,
            long bytes) {
        try {
            ContentValues values = begun.get(id);
            if (write(id, state, result, conditions, complaint, bytes) == 0 && values != null) {
                write(insert(values), state, result, conditions, complaint, bytes);
            }
        } catch (SQLException full) {
            keepUnsaved(id, state, result, conditions, complaint, bytes);
            throw full;
        }
    }

    private File unsaved() {
        return new File(app.getFilesDir(), "unsaved");
    }

    private void keepUnsaved(long id, String state, String result, String conditions,
            String complaint, long bytes) {
        ContentValues values = begun.get(id);
        if (values == null) {
            return;
        }
        // Two histories may give the same number.
        File file = new File(unsaved(), id + "-" + values.getAsLong("start_ms"));
        try {
            unsaved().mkdirs();
            JSONObject run = new JSONObject();
            for (String name : values.keySet()) {
                run.put(name, values.get(name));
            }
            Texts.write(file, new JSONObject().put("state", state).put("result", result)
                    .put("conditions", conditions).put("complaint", complaint)
                    .put("bytes", bytes).put("id", id).put("run", run).toString());
        } catch (IOException | JSONException full) {
            // Half of it is none; the caller says that the history cannot be written.
            file.delete();
        }
    }

    private void takeUnsaved() {
        File[] files = unsaved().listFiles();
        for (File file : files == null ? new File[0] : files) {
            try {
                JSONObject kept = new JSONObject(new String(Files.readAllBytes(file.toPath()),
                        StandardCharsets.UTF_8));
                write(numberOf(kept.getLong("id"), kept.getJSONObject("run")),
                        kept.getString("state"), text(kept, "result"), text(kept, "conditions"),
                        text(kept, "complaint"), kept.getLong("bytes"));
            } catch (IOException | JSONException none) {
                // It was not written by the code above, or not to its end.
            }
            file.delete();
        }
    }

    /** The run in this history, which may have begun after the one that it was in was put aside. */
    private long numberOf(long id, JSONObject run) throws JSONException {
        ContentValues values = new ContentValues();
        for (Iterator<String> names = run.keys(); names.hasNext(); ) {
            String name = names.next();
            if (run.get(name) instanceof Number) {
                values.put(name, run.getLong(name));
            } else {
                values.put(name, run.getString(name));
            }
        }
        boolean isThere = DatabaseUtils.longForQuery(getReadableDatabase(),
                "SELECT count(*) FROM run WHERE id = ? AND start_ms = ?",
                new String[] {Long.toString(id), Long.toString(run.getLong("start_ms"))}) > 0;
        return isThere ? id : insert(values);
    }

    private static String text(JSONObject kept, String name) {
        return kept.isNull(name) ? null : kept.optString(name);
    }

    /** The answer is 0 if there is no such run. */
    private long write(long id, String state, String result, String conditions, String complaint,
            long bytes) {
        ContentValues values = new ContentValues();
        values.put("state", state);
        values.put("result", result);
        values.put("conditions", conditions);
        values.put("complaint", complaint);
        long written = bytes;
        if (result != null) {
            Figures figures = Figures.of(result);
            values.put("rate", figures.rate());
            values.put("bytes_rate", figures.bytesRate());
            written = Math.max(bytes, figures.written());
        }
        long counted = written;
        return atOnce(database -> {
            long booked = DatabaseUtils.longForQuery(database,
                    "SELECT coalesce(max(booked), 0) FROM run WHERE id = ?", arguments(id));
            values.put("booked", counted);
            long found = database.update("run", values, "id = ?", arguments(id));
            if (found > 0) {
                count(database, counted - booked);
            }
            return found;
        });
    }

    /** Bytes that the app wrote for runs over its life, about. */
    public long written() {
        return DatabaseUtils.longForQuery(getReadableDatabase(), "SELECT bytes FROM written", null);
    }

    /** The newest first; null is any test, any state. */
    public List<Run> runs(String test, String state) {
        List<String> arguments = new ArrayList<>();
        StringBuilder where = new StringBuilder("state <> '" + Run.RUNNING + "'");
        if (test != null) {
            where.append(" AND test = ?");
            arguments.add(test);
        }
        if (state != null) {
            where.append(" AND state = ?");
            arguments.add(state);
        }
        return list(where + " ORDER BY id DESC", arguments.toArray(new String[0]));
    }

    /** One run, or null. */
    public Run run(long id) {
        List<Run> found = list("id = ?", arguments(id));
        return found.isEmpty() ? null : found.get(0);
    }

    private List<Run> list(String where, String[] arguments) {
        List<Run> runs = new ArrayList<>();
        try (Cursor rows = getReadableDatabase().rawQuery(
                "SELECT " + COLUMNS + " FROM run WHERE " + where, arguments)) {
            while (rows.moveToNext()) {
                runs.add(new Run(rows.getLong(0), rows.getLong(1), rows.getString(2),
                        rows.getString(3), rows.getString(4), rows.getString(5),
                        rows.getString(6), rows.getDouble(7), rows.getDouble(8),
                        rows.getString(9)));
            }
        }
        return runs;
    }

    /** The result as the engine printed it, or null. */
    public String result(long id) {
        return text("result", id);
    }

    /** The conditions around a run, as JSON, or null. */
    public String conditions(long id) {
        return text("conditions", id);
    }

    /** In parts, since Android's window on a row is 2 MB, and many repetitions have more. */
    private String text(String column, long id) {
        StringBuilder text = null;
        for (int from = 1; ; from += PART) {
            String query = "SELECT substr(" + column + ", " + from + ", " + PART
                    + ") FROM run WHERE id = ?";
            try (Cursor rows = getReadableDatabase().rawQuery(query, arguments(id))) {
                if (!rows.moveToFirst() || rows.isNull(0)) {
                    return null;
                }
                String part = rows.getString(0);
                text = text == null ? new StringBuilder(part) : text.append(part);
                if (part.length() < PART) {
                    return text.toString();
                }
            }
        }
    }

    /** Rates of the complete runs of a test on a storage, the least first. */
    public List<Double> rates(Run like) {
        List<Double> rates = new ArrayList<>();
        try (Cursor rows = getReadableDatabase().rawQuery(
                "SELECT rate FROM run WHERE test = ? AND by = ? AND state = ? AND " + ON_STORAGE
                        + " ORDER BY rate",
                new String[] {like.test, like.by, Run.COMPLETE, "" + like.volume,
                    like.storage})) {
            while (rows.moveToNext()) {
                rates.add(rows.getDouble(0));
            }
        }
        return rates;
    }

    /** Operations a second of the latest complete run of a test on a storage, or 0. */
    public double latestRate(String test, Storage storage) {
        try (Cursor rows = getReadableDatabase().rawQuery(
                "SELECT rate FROM run WHERE test = ? AND state = ? AND " + ON_STORAGE
                        + " ORDER BY id DESC LIMIT 1",
                new String[] {test, Run.COMPLETE, storage.volume, storage.name})) {
            return rows.moveToFirst() ? rows.getDouble(0) : 0;
        }
    }

    public void delete(long id) {
        getWritableDatabase().delete("run", "id = ?", arguments(id));
    }

    private static String[] arguments(long id) {
        return new String[] {Long.toString(id)};
    }
}
