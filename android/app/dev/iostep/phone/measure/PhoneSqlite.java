package dev.iostep.phone.measure;

import android.content.Context;
import android.database.Cursor;
import android.database.SQLException;
import android.database.sqlite.SQLiteDatabase;

import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import dev.iostep.phone.R;
import dev.iostep.phone.ui.Words;

/**
 * The SQLite that the phone's maker built, by {@code android.database.sqlite}, the only way to it: the
 * same transactions as those of the engine, in the same JSON.
 *
 * <p>Where it ran, and what the job is with every setting, the engine says: it runs one transaction of
 * the same test before. The tables are those of iostep-load's row.rs.
 */
public final class PhoneSqlite {
    /** Stands in the job and in the environment for the library's file, which an app cannot name. */
    public static final String LIBRARY = "android.database.sqlite";
    /** Warnings of the engine's own run, which say nothing of this one. */
    private static final Set<String> OF_A_RUN = new HashSet<>(
            Arrays.asList("swapping", "busy_machine", "steal", "calls_refused"));
    private static final long PROGRESS_NS = 200_000_000;
    /** Keys whose random order is kept in memory, of which an app has little: 32 MiB. */
    private static final long MOST_KEYS = 4 << 20;
    /** Bytes of the rows that the threads hold at once, each also as SQLite's copy. */
    private static final long MOST_ROW_BYTES = 32 << 20;

    private final Context context;
    private final Engine engine;

    public PhoneSqlite(Context context, Engine engine) {
        this.context = context;
        this.engine = engine;
    }

    /** Runs a test in a directory. */
    public Engine.Outcome bench(List<String> arguments, File directory, Progress.Listener listener,
            Stop stop) throws IOException {
        long row = number(arguments, "--record=") * Math.max(1, number(arguments, "--threads="));
        if (row > MOST_ROW_BYTES) {
            throw new IOException(context.getString(R.string.phone_row,
                    Words.bytes(context, row), Words.bytes(context, MOST_ROW_BYTES)));
        }
        List<String> once = new ArrayList<>(arguments);
        set(once, "--transactions=");
        set(once, "--rows=");
        Engine.Outcome asked = engine.bench(once, directory, null, stop);
        if (!asked.whole || stop.isAsked()) {
            // Its figures are those of another SQLite.
            return new Engine.Outcome("", asked.complaint, false);
        }
        try {
            JSONObject result = new JSONObject(asked.text).getJSONObject("result");
            JSONObject job = result.getJSONObject("job");
            long transactions = number(arguments, "--transactions=");
            long rows = number(arguments, "--rows=");
            job.put("transactions", transactions).put("library", LIBRARY);
            if (job.getString("operation").equals("delete")) {
                job.put("rows", transactions * job.getLong("statements"));
            } else if (rows > 0) {
                job.put("rows", rows);
            }
            result.put("arguments", new JSONArray(arguments));
            result.put("warnings", without(result.getJSONArray("warnings")));
            return measure(result, directory, listener, stop);
        } catch (JSONException error) {
            throw new IOException(context.getString(R.string.failed_unread, error.getMessage()));
        }
    }

    /** The number behind a flag, or 0 without it. */
    private static long number(List<String> arguments, String flag) {
        for (String argument : arguments) {
            if (argument.startsWith(flag)) {
                return Long.parseLong(argument.substring(flag.length()));
            }
        }
        return 0;
    }

    /** Once is enough to be asked: a flag that is there is 1. */
    private static void set(List<String> arguments, String flag) {
        for (int at = 0; at < arguments.size(); at++) {
            if (arguments.get(at).startsWith(flag)) {
                arguments.set(at, flag + 1);
            }
        }
    }

    private static JSONArray without(JSONArray warnings) throws JSONException {
        JSONArray kept = new JSONArray();
        for (int at = 0; at < warnings.length(); at++) {
            if (!OF_A_RUN.contains(warnings.getJSONObject(at).getString("kind"))) {
                kept.put(warnings.getJSONObject(at));
            }
        }
        return kept;
    }

    private Engine.Outcome measure(JSONObject result, File directory,
            Progress.Listener listener, Stop stop) throws JSONException, IOException {
        JSONObject job = result.getJSONObject("job");
        long keys = job.getLong("transactions") * job.getLong("statements") * job.getInt("threads");
        if (job.getString("keys").equals("random") && keys > MOST_KEYS) {
            throw new IOException(context.getString(R.string.phone_keys, keys, MOST_KEYS));
        }
        File place = new File(directory, "iostep-phone");
        remove(place);
        if (!place.mkdirs()) {
            throw new IOException(context.getString(R.string.phone_directory, place.getPath()));
        }
        List<PhoneWorker> workers = new ArrayList<>();
        try {
            Making making = new Making(job, listener, stop);
            for (int thread = 0; thread < job.getInt("threads"); thread++) {
                workers.add(new PhoneWorker(job, place, thread, stop, making));
            }
            if (stop.isAsked()) {
                return new Engine.Outcome("", "", false);
            }
            checkPageSize(job, workers);
            JSONObject sqlite = result.getJSONObject("environment").getJSONObject("sqlite");
            workers.get(0).describe(sqlite);
            PhoneRun run = new PhoneRun(context, job, workers);
            run.start();
            while (!run.join(PROGRESS_NS)) {
                listener.onProgress(run.progress());
            }
            JSONObject told = run.json();
            result.put("runs", new JSONArray().put(told));
            String state = told.getString("state");
            return figures(result, directory, state.equals("complete"), run.complaint());
        } catch (SQLException error) {
            return new Engine.Outcome("",
                    context.getString(R.string.phone_failed, error.getMessage()), false);
        } finally {
            for (PhoneWorker worker : workers) {
                worker.close();
            }
            remove(place);
        }
    }

    /** How far the rows are made that are there before the start. */
    private static final class Making implements PhoneWorker.Maker {
        private final double rows;
        private final Progress.Listener listener;
        private final Stop stop;
        private long made;
        private long toldNs = System.nanoTime();

        Making(JSONObject job, Progress.Listener listener, Stop stop) throws JSONException {
            rows = (double) job.getLong("rows") * job.getInt("tables") * job.getInt("databases")
                    * job.getInt("threads");
            this.listener = listener;
            this.stop = stop;
        }

        @Override
        public boolean goesOn() {
            made++;
            long now = System.nanoTime();
            if (now - toldNs >= PROGRESS_NS) {
                toldNs = now;
                listener.onProgress(new Progress(1, 1, false, Math.min(1, made / rows), -1));
            }
            return !stop.isAsked();
        }
    }

    /** SQLite keeps silent about a size that it does not take. */
    private void checkPageSize(JSONObject job, List<PhoneWorker> workers)
            throws JSONException, IOException {
        if (job.isNull("page_bytes")) {
            return;
        }
        long wanted = job.getLong("page_bytes");
        for (PhoneWorker worker : workers) {
            for (String size : worker.pageSizes()) {
                if (!size.equals(Long.toString(wanted))) {
                    throw new IOException(
                            context.getString(R.string.phone_page_size, size, wanted));
                }
            }
        }
    }

    /** The summary is worked out by the one who does it for all results. */
    private Engine.Outcome figures(JSONObject result, File directory, boolean whole,
            String complaint) throws IOException {
        File file = File.createTempFile("phone", ".json", directory);
        try {
            Texts.write(file, result.toString());
            Engine.Outcome shown = engine.show(file);
            return new Engine.Outcome(shown.text,
                    shown.whole ? complaint : shown.complaint, whole && shown.whole);
        } finally {
            file.delete();
        }
    }

    private static void remove(File place) {
        File[] files = place.listFiles();
        if (files != null) {
            for (File file : files) {
                file.delete();
            }
        }
        place.delete();
    }

    /** One value of a query, as text. */
    static String value(SQLiteDatabase database, String query) {
        try (Cursor rows = database.rawQuery(query, null)) {
            return rows.moveToFirst() && !rows.isNull(0) ? rows.getString(0) : "";
        }
    }
}
