package dev.iostep.phone.upload;

import android.app.job.JobInfo;
import android.app.job.JobParameters;
import android.app.job.JobScheduler;
import android.app.job.JobService;
import android.content.ComponentName;
import android.content.Context;

import dev.iostep.phone.history.Uploads;
import dev.iostep.phone.settings.Settings;

/** Sends what waits as soon as there is a network, whether the app is open or not. */
public final class UploadJob extends JobService {
    private static final int ID = 1;
    private static final long FIRST_WAIT_MS = 60_000;

    /** Sends once there is a network, if something waits and the person agrees. */
    public static void schedule(Context context) {
        if (new Uploads(context).waiting().isEmpty() || !new Settings(context).mayUpload()) {
            return;
        }
        ComponentName job = new ComponentName(context, UploadJob.class);
        context.getSystemService(JobScheduler.class).schedule(new JobInfo.Builder(ID, job)
                .setRequiredNetworkType(JobInfo.NETWORK_TYPE_ANY)
                .setBackoffCriteria(FIRST_WAIT_MS, JobInfo.BACKOFF_POLICY_EXPONENTIAL)
                .build());
    }

    /** Adds a run to what waits, if the person agrees. */
    public static void add(Context context, long run) {
        Settings settings = new Settings(context);
        if (settings.mayUpload()) {
            new Uploads(context).add(run,
                    settings.text(dev.iostep.phone.settings.Parameter.SERVER));
            schedule(context);
        }
    }

    /** The person does not agree any more. */
    public static void cancel(Context context) {
        context.getSystemService(JobScheduler.class).cancel(ID);
        new Uploads(context).forgetWaiting();
    }

    @Override
    public boolean onStartJob(JobParameters parameters) {
        if (!new Settings(this).mayUpload()) {
            return false;
        }
        new Thread(() -> jobFinished(parameters, !new Sender(this).sendWaiting()),
                "iostep-upload").start();
        return true;
    }

    @Override
    public boolean onStopJob(JobParameters parameters) {
        // The network went away: what waits is sent another time.
        return true;
    }
}
