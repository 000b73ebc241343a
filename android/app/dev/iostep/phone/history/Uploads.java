package dev.iostep.phone.history;

import android.content.ContentValues;
import android.content.Context;
import android.database.Cursor;

import java.util.ArrayList;
import java.util.List;

/**
 * What was sent and what waits, in the database of the history. A row outlives its run, since its
 * token is the only way to take a result back.
 */
public final class Uploads {
    private final History history;

    public Uploads(Context context) {
        history = History.of(context);
    }

    /** A run is to be sent to a server; once, however often it is asked for. */
    public void add(long run, String server) {
        Upload before = of(run);
        if (before != null && (before.state.equals(Upload.SENT)
                || before.state.equals(Upload.WAITING) && before.server.equals(server))) {
            return;
        }
        ContentValues values = new ContentValues();
        values.put("run", run);
        values.put("server", server);
        values.put("state", Upload.WAITING);
        history.getWritableDatabase().replaceOrThrow("upload", null, values);
    }

    public Upload of(long run) {
        List<Upload> found = list("run = ?", Long.toString(run));
        return found.isEmpty() ? null : found.get(0);
    }

    /** What waits for a server, the oldest first. */
    public List<Upload> waiting(String server) {
        return list("state = ? AND server = ?", Upload.WAITING, server);
    }

    public List<Upload> sent() {
        return list("state = ?", Upload.SENT);
    }

    private List<Upload> list(String where, String... arguments) {
        List<Upload> found = new ArrayList<>();
        try (Cursor rows = history.getReadableDatabase().rawQuery(
                "SELECT run, server, state, id, token, test, answer FROM upload WHERE " + where
                        + " ORDER BY run", arguments)) {
            while (rows.moveToNext()) {
                found.add(new Upload(rows.getLong(0), rows.getString(1), rows.getString(2),
                        rows.getString(3), rows.getString(4), rows.getString(5),
                        rows.getString(6)));
            }
        }
        return found;
    }

    /** A server took it. Also if nobody wanted it any more meanwhile: only the token takes it back. */
    public void sent(long run, String server, String id, String token, String test,
            String answer) {
        ContentValues values = new ContentValues();
        values.put("run", run);
        values.put("server", server);
        values.put("state", Upload.SENT);
        values.put("id", id);
        values.put("token", token);
        values.put("test", test);
        values.put("answer", answer);
        history.getWritableDatabase().replaceOrThrow("upload", null, values);
    }

    /** It was tried in vain, and waits on. */
    public void waits(Upload upload, String why) {
        end(upload, Upload.WAITING, why);
    }

    /** A server will not take it, or it was taken back. */
    public void end(Upload upload, String state, String answer) {
        ContentValues values = new ContentValues();
        values.put("state", state);
        values.put("answer", answer);
        history.getWritableDatabase().update("upload", values, "run = ? AND server = ?",
                new String[] {Long.toString(upload.run), upload.server});
    }

    /** What waits is not sent, but for this server: the person agrees to no other. */
    public void forgetWaiting(String but) {
        history.getWritableDatabase().delete("upload", "state = ? AND server <> ?",
                new String[] {Upload.WAITING, but});
    }
}
