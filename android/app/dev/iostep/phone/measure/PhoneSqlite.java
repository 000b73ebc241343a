package dev.iostep.phone.measure;

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

    private final Engine engine;

    public PhoneSqlite(Engine engine) {
        this.engine = engine;
    }

    /** Runs a test in a directory. */
    public Engine.Outcome bench(List<String> arguments, File directory, Progress.Listener listener,
            Stop stop) throws IOException {
        List<String> once = new ArrayList<>(arguments);
        long transactions = 0;
        for (int at = 0; at < once.size(); at++) {
            if (once.get(at).startsWith("--transactions=")) {
                transactions = Long.parseLong(once.get(at).substring("--transactions=".length()));
                once.set(at, "--transactions=1");
            }
        }
        Engine.Outcome asked = engine.bench(once, directory, null, stop);
        if (!asked.whole) {
            return asked;
        }
        try {
            JSONObject result = new JSONObject(asked.text).getJSONObject("result");
            JSONObject job = result.getJSONObject("job");
            job.put("transactions", transactions).put("library", LIBRARY);
            if (job.getString("operation").equals("delete")) {
                job.put("rows", transactions * job.getLong("statements"));
            }
            result.put("arguments", new JSONArray(arguments));
            result.put("warnings", without(result.getJSONArray("warnings")));
            return measure(result, directory, listener, stop);
        } catch (JSONException error) {
            throw new IOException("the engine's result is not readable: " + error.getMessage());
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
            throw new IOException(keys + " keys in random order: an app has memory for "
                    + MOST_KEYS + "; set fewer transactions, statements or threads");
        }
        File place = new File(directory, "iostep-phone");
        remove(place);
        if (!place.mkdirs()) {
            throw new IOException(place + ": cannot be made");
        }
        List<PhoneWorker> workers = new ArrayList<>();
        try {
            for (int thread = 0; thread < job.getInt("threads"); thread++) {
                workers.add(new PhoneWorker(job, place, thread, stop));
            }
            JSONObject sqlite = result.getJSONObject("environment").getJSONObject("sqlite");
            workers.get(0).describe(sqlite);
            PhoneRun run = new PhoneRun(job, workers);
            run.start();
            while (!run.join(PROGRESS_NS)) {
                listener.onProgress(run.progress());
            }
            JSONObject told = run.json();
            result.put("runs", new JSONArray().put(told));
            String state = told.getString("state");
            return figures(result, directory, state.equals("complete"), run.complaint());
        } catch (SQLException error) {
            return new Engine.Outcome("", "Android's SQLite: " + error.getMessage(), false);
        } finally {
            for (PhoneWorker worker : workers) {
                worker.close();
            }
            remove(place);
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
