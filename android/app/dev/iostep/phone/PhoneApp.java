package dev.iostep.phone;

import android.app.Application;
import android.database.SQLException;
import android.database.sqlite.SQLiteDatabaseCorruptException;

import dev.iostep.phone.history.Damaged;
import dev.iostep.phone.history.History;
import dev.iostep.phone.upload.UploadJob;

/** The process. */
public final class PhoneApp extends Application {
    private int died;
    private String trouble;
    private String damaged;

    @Override
    public void onCreate() {
        super.onCreate();
        try {
            try {
                begin();
            } catch (SQLiteDatabaseCorruptException damaged) {
                // It has been put aside; this is a new one.
                begin();
            }
        } catch (SQLException full) {
            // A phone that is full must not end the app, in which there is something to delete.
            trouble = getString(R.string.history_unopened, full.getMessage());
        }
    }

    private void begin() {
        // Whatever is said to be running was run by a process before this one.
        died = History.of(this).findDied();
        // A job is forgotten when the phone is switched off; what waits is not.
        UploadJob.schedule(this);
    }

    /** Why the history could not be written when the process began, or null. */
    public String trouble() {
        return trouble;
    }

    /** That a history was put aside, in this process or in one before; null if none was. */
    public String damaged() {
        String name = Damaged.take(this);
        if (name != null) {
            damaged = getString(R.string.history_damaged, name);
        }
        return damaged;
    }

    /** How many runs an earlier process did not end; told once. */
    public int takeDied() {
        int told = died;
        died = 0;
        return told;
    }
}
