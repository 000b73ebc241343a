package dev.iostep.phone.upload;

import android.content.Context;

import org.json.JSONArray;
import org.json.JSONObject;

import java.io.File;
import java.io.IOException;
import java.util.HashSet;
import java.util.Set;

import dev.iostep.phone.R;
import dev.iostep.phone.history.Export;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.history.Upload;
import dev.iostep.phone.history.Uploads;
import dev.iostep.phone.measure.Engine;
import dev.iostep.phone.measure.Measuring;
import dev.iostep.phone.measure.Texts;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;

/** Brings runs to a server, and takes them back. Not on the main thread. */
public final class Sender {
    /** Two at once would send the same. */
    private static final Object ONE_AT_A_TIME = new Object();

    private final Context context;
    private final Uploads uploads;
    private final Settings settings;

    public Sender(Context context) {
        this.context = context;
        uploads = new Uploads(context);
        settings = new Settings(context);
    }

    /** Exactly what is sent of a run, to the byte before it is packed. */
    public String toSend(Run run) throws IOException {
        File file = File.createTempFile("send", ".json", context.getCacheDir());
        try {
            String result = Export.result(History.of(context), run);
            if (result == null) {
                throw new IOException(context.getString(R.string.no_figure));
            }
            Texts.write(file, result);
            Engine.Outcome outcome = new Engine(context).toSend(file);
            if (!outcome.whole) {
                throw new IOException(outcome.complaint);
            }
            return outcome.text;
        } finally {
            file.delete();
        }
    }

    /** Sends what waits; false if something still waits for a better time. */
    public boolean sendWaiting() {
        synchronized (ONE_AT_A_TIME) {
            boolean all = true;
            Set<Long> tried = new HashSet<>();
            for (Upload next = next(tried); next != null; next = next(tried)) {
                if (Measuring.get().isRunning()) {
                    return false;
                }
                tried.add(next.run);
                all &= send(next);
            }
            return all;
        }
    }

    /** Looked for each time: meanwhile another may have come to wait. */
    private Upload next(Set<Long> tried) {
        if (settings.mayUpload()) {
            for (Upload upload : uploads.waiting(settings.text(Parameter.SERVER))) {
                if (!tried.contains(upload.run)) {
                    return upload;
                }
            }
        }
        return null;
    }

    private boolean send(Upload upload) {
        Run run = History.of(context).run(upload.run);
        if (run == null) {
            uploads.end(upload, Upload.REFUSED, context.getString(R.string.run_deleted));
            return true;
        }
        try {
            String result = toSend(run);
            if (!isWanted(upload)) {
                return true;
            }
            JSONObject answer = client(upload).submit(Key.of(context), result);
            uploads.sent(upload.run, upload.server, answer.optString("id"),
                    Client.token(answer), answer.optString("test"), said(answer));
            return true;
        } catch (IOException later) {
            uploads.waits(upload, later.getMessage());
            return false;
        } catch (Client.Refused refused) {
            if (refused.isForNow()) {
                uploads.waits(upload, refused.getMessage());
                return false;
            }
            uploads.end(upload, Upload.REFUSED, refused.getMessage());
            return true;
        }
    }

    /** Whether the person still agrees to it. */
    private boolean isWanted(Upload upload) {
        Upload now = uploads.of(upload.run);
        return now != null && now.state.equals(Upload.WAITING)
                && now.server.equals(upload.server) && settings.mayUploadTo(upload.server);
    }

    private Client client(Upload upload) {
        return new Client(context, upload.server);
    }

    /** The server's state of a result, with its reasons, in its words. */
    private static String said(JSONObject answer) {
        StringBuilder words = new StringBuilder(answer.optString("state"));
        JSONArray reasons = answer.optJSONArray("reasons");
        for (int at = 0; reasons != null && at < reasons.length(); at++) {
            JSONObject reason = reasons.optJSONObject(at);
            words.append(at == 0 ? ": " : "; ").append(reason.optString("text"));
        }
        return words.toString();
    }

    /** Takes a result back; the answer is why it was not, or null. */
    public String takeBack(Upload upload) {
        try {
            client(upload).remove(upload.id, upload.token);
        } catch (IOException error) {
            return error.getMessage();
        } catch (Client.Refused refused) {
            // It is gone already: that is what was asked for.
            if (refused.status != 404) {
                return refused.getMessage();
            }
        }
        uploads.end(upload, Upload.TAKEN_BACK, null);
        return null;
    }

    /** The place of this model in a test's ranking, or null where it has none. */
    public JSONObject place(Upload upload, String vendor, String model) throws IOException {
        try {
            JSONArray places = client(upload).ranking(upload.test, model)
                    .optJSONArray("places");
            for (int at = 0; places != null && at < places.length(); at++) {
                JSONObject place = places.getJSONObject(at);
                if (place.optString("model").equals(model)
                        && place.optString("vendor").equals(vendor)) {
                    return place;
                }
            }
            return null;
        } catch (Client.Refused | org.json.JSONException error) {
            throw new IOException(error.getMessage());
        }
    }
}
