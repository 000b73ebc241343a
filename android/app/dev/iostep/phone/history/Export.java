package dev.iostep.phone.history;

import android.app.Activity;
import android.content.ClipData;
import android.content.Context;
import android.content.Intent;
import android.net.Uri;

import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.text.SimpleDateFormat;
import java.util.Date;
import java.util.List;
import java.util.Locale;
import java.util.TimeZone;

import dev.iostep.phone.R;
import dev.iostep.phone.ui.Background;

/** Runs as files for other apps and for the desk. */
public final class Export {
    private static final String CSV_HEADER =
            "start,test,by,state,storage,operations_per_second,bytes_per_second\n";

    private Export() {}

    /** The result of a run with the conditions' warnings among its own, as {@code iostep} reads it. */
    public static String result(History history, Run run) {
        String text = history.result(run.id);
        String conditions = history.conditions(run.id);
        if (text == null || conditions == null) {
            return text;
        }
        try {
            JSONObject whole = new JSONObject(text);
            JSONArray found = new JSONObject(conditions).getJSONArray("warnings");
            for (JSONObject part : new JSONObject[] {
                whole.getJSONObject("result"), whole.getJSONObject("summary")}) {
                JSONArray warnings = part.getJSONArray("warnings");
                for (int at = 0; at < found.length(); at++) {
                    if (!has(warnings, found.getJSONObject(at).getString("kind"))) {
                        warnings.put(found.getJSONObject(at));
                    }
                }
            }
            return whole.toString();
        } catch (JSONException error) {
            return text;
        }
    }

    private static boolean has(JSONArray warnings, String kind) throws JSONException {
        for (int at = 0; at < warnings.length(); at++) {
            if (warnings.getJSONObject(at).getString("kind").equals(kind)) {
                return true;
            }
        }
        return false;
    }

    /** Two exports at once may have one file. */
    private static final Object ONE_AT_A_TIME = new Object();

    /** One run through the system's sheet. */
    public static void share(Activity activity, Run run) {
        History history = History.of(activity);
        write(activity, "iostep-" + run.test + "-" + run.id + ".json", "application/json",
                out -> out.write(result(history, run)));
    }

    /** Every measured run of a list: one JSON list. */
    public static void shareJson(Activity activity, List<Run> runs) {
        write(activity, "iostep-history.json", "application/json",
                out -> json(History.of(activity), runs, out));
    }

    /** Every run of a list: a line of CSV. */
    public static void shareCsv(Activity activity, List<Run> runs) {
        write(activity, "iostep-history.csv", "text/csv", out -> csv(runs, out));
    }

    static void json(History history, List<Run> runs, Writer out) throws IOException {
        String between = "[";
        for (Run run : runs) {
            String result = result(history, run);
            // Half a result, which earlier versions kept, would make all of it unreadable.
            if (result != null && Figures.isResult(result)) {
                out.write(between);
                out.write(result);
                between = ",\n";
            }
        }
        out.write(between.equals("[") ? "[]\n" : "]\n");
    }

    static void csv(List<Run> runs, Writer out) throws IOException {
        SimpleDateFormat iso = new SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss'Z'", Locale.ROOT);
        iso.setTimeZone(TimeZone.getTimeZone("UTC"));
        out.write(CSV_HEADER);
        for (Run run : runs) {
            out.write(iso.format(new Date(run.startMs)) + "," + run.test + ","
                    + run.by.toLowerCase(Locale.ROOT) + "," + run.state + "," + quoted(run.storage)
                    + "," + run.rate + "," + run.bytesRate + "\n");
        }
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\"", "\"\"") + "\"";
    }

    /** What is written to a file. */
    private interface Content {
        void writeTo(Writer out) throws IOException;
    }

    /** Many results take seconds, in which the screen goes on. */
    private static void write(Activity activity, String name, String type, Content content) {
        File file = new File(SharedFile.directory(activity), name);
        Background.run(() -> write(file, content), error -> {
            if (activity.isDestroyed()) {
                return;
            }
            if (error != null) {
                tell(activity, error);
            } else {
                send(activity, file, name, type);
            }
        });
    }

    /** What went wrong, or null. */
    private static IOException write(File file, Content content) {
        synchronized (ONE_AT_A_TIME) {
            try (Writer out = new OutputStreamWriter(new FileOutputStream(file),
                    StandardCharsets.UTF_8)) {
                content.writeTo(out);
                return null;
            } catch (IOException error) {
                file.delete();
                return error;
            }
        }
    }

    private static void send(Activity activity, File file, String name, String type) {
        Uri uri = SharedFile.uri(file);
        Intent send = new Intent(Intent.ACTION_SEND).setType(type)
                .putExtra(Intent.EXTRA_STREAM, uri)
                .putExtra(Intent.EXTRA_SUBJECT, name)
                .addFlags(Intent.FLAG_GRANT_READ_URI_PERMISSION);
        // The sheet reads the file, too, and takes the right from here.
        send.setClipData(ClipData.newRawUri(name, uri));
        activity.startActivity(Intent.createChooser(send, activity.getString(R.string.share)));
    }

    private static void tell(Context context, IOException error) {
        android.widget.Toast.makeText(context,
                context.getString(R.string.export_failed, error.getMessage()),
                android.widget.Toast.LENGTH_LONG).show();
    }
}
