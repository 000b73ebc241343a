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
        if (before != null && !before.state.equals(Upload.REFUSED)
                && !before.state.equals(Upload.TAKEN_BACK)) {
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

    /** The oldest first. */
    public List<Upload> waiting() {
        return list("state = ?", Upload.WAITING);
    }

    public List<Upload> sent() {
        return list("state = ?", Upload.SENT);
    }

    private List<Upload> list(String where, String argument) {
        List<Upload> found = new ArrayList<>();
        try (Cursor rows = history.getReadableDatabase().rawQuery(
                "SELECT run, server, state, id, token, test, answer FROM upload WHERE " + where
                        + " ORDER BY run", new String[] {argument})) {
            while (rows.moveToNext()) {
                found.add(new Upload(rows.getLong(0), rows.getString(1), rows.getString(2),
                        rows.getString(3), rows.getString(4), rows.getString(5),
                        rows.getString(6)));
            }
        }
        return found;
    }

    /** A server took it. */
    public void sent(long run, String id, String token, String test, String answer) {
        ContentValues values = new ContentValues();
        values.put("state", Upload.SENT);
        values.put("id", id);
        values.put("token", token);
        values.put("test", test);
        values.put("answer", answer);
        update(run, values);
    }

    /** It was tried in vain, and waits on. */
    public void waits(long run, String why) {
        end(run, Upload.WAITING, why);
    }

    /** A server will not take it, or it was taken back. */
    public void end(long run, String state, String answer) {
        ContentValues values = new ContentValues();
        values.put("state", state);
        values.put("answer", answer);
        update(run, values);
    }

    /** What waits is not sent: the person does not agree any more. */
    public void forgetWaiting() {
        history.getWritableDatabase().delete("upload", "state = ?",
                new String[] {Upload.WAITING});
    }

    private void update(long run, ContentValues values) {
        history.getWritableDatabase().update("upload", values, "run = ?",
                new String[] {Long.toString(run)});
    }
}
