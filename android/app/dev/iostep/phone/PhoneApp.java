package dev.iostep.phone;

import android.app.Application;
import android.database.SQLException;

import dev.iostep.phone.history.History;
import dev.iostep.phone.upload.UploadJob;

/** The process. */
public final class PhoneApp extends Application {
    private int died;
    private String trouble;

    @Override
    public void onCreate() {
        super.onCreate();
        // Whatever is said to be running was run by a process before this one.
        try {
            died = History.of(this).findDied();
            // A job is forgotten when the phone is switched off; what waits is not.
            UploadJob.schedule(this);
        } catch (SQLException full) {
            // A phone that is full must not end the app, in which there is something to delete.
            trouble = getString(R.string.history_unopened, full.getMessage());
        }
    }

    /** Why the history could not be written when the process began, or null. */
    public String trouble() {
        return trouble;
    }

    /** How many runs an earlier process did not end; told once. */
    public int takeDied() {
        int told = died;
        died = 0;
        return told;
    }
}
