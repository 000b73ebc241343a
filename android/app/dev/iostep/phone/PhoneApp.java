package dev.iostep.phone;

import android.app.Application;

import dev.iostep.phone.history.History;
import dev.iostep.phone.upload.UploadJob;

/** The process. */
public final class PhoneApp extends Application {
    private int died;

    @Override
    public void onCreate() {
        super.onCreate();
        // Whatever is said to be running was run by a process before this one.
        died = History.of(this).findDied();
        // A job is forgotten when the phone is switched off; what waits is not.
        UploadJob.schedule(this);
    }

    /** How many runs an earlier process did not end; told once. */
    public int takeDied() {
        int told = died;
        died = 0;
        return told;
    }
}
