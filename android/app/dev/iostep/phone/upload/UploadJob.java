package dev.iostep.phone.upload;

import android.app.job.JobInfo;
import android.app.job.JobParameters;
import android.app.job.JobScheduler;
import android.app.job.JobService;
import android.content.ComponentName;
import android.content.Context;
import android.database.SQLException;

import java.util.concurrent.atomic.AtomicInteger;

import dev.iostep.phone.history.Uploads;
import dev.iostep.phone.measure.Measuring;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;

/** Sends what waits as soon as there is a network, whether the app is open or not. */
public final class UploadJob extends JobService {
    private static final int ID = 1;
    private static final long FIRST_WAIT_MS = 60_000;
    /** Jobs of this process that are sending. */
    private static final AtomicInteger SENDING = new AtomicInteger();

    /** Sends once there is a network, if something waits and the person agrees. */
    public static void schedule(Context context) {
        // Another of the same number would end the one that is there.
        if (context.getSystemService(JobScheduler.class).getPendingJob(ID) == null) {
            scheduleAnew(context);
        }
    }

    private static void scheduleAnew(Context context) {
        Settings settings = new Settings(context);
        if (!settings.mayUpload()
                || new Uploads(context).waiting(settings.text(Parameter.SERVER)).isEmpty()) {
            return;
        }
        ComponentName job = new ComponentName(context, UploadJob.class);
        context.getSystemService(JobScheduler.class).schedule(new JobInfo.Builder(ID, job)
                .setRequiredNetworkType(JobInfo.NETWORK_TYPE_ANY)
                .setBackoffCriteria(FIRST_WAIT_MS, JobInfo.BACKOFF_POLICY_EXPONENTIAL)
                .build());
    }

    /** Adds a run to what waits, if the person agrees. It is sent once something is scheduled. */
    public static void add(Context context, long run) {
        Settings settings = new Settings(context);
        if (settings.mayUpload()) {
            new Uploads(context).add(run, settings.text(Parameter.SERVER));
        }
    }

    /** Adds a run that the person wants to be sent, without the wait after those before it. */
    public static void send(Context context, long run) {
        add(context, run);
        if (SENDING.get() == 0) {
            scheduleAnew(context);
        }
    }

    /** The person agrees to the server of Setting, and to no other. */
    public static void agree(Context context) {
        Settings settings = new Settings(context);
        settings.agree(true);
        new Uploads(context).forgetWaiting(settings.text(Parameter.SERVER));
    }

    /** The person does not agree any more. */
    public static void cancel(Context context) {
        new Settings(context).agree(false);
        context.getSystemService(JobScheduler.class).cancel(ID);
        new Uploads(context).forgetWaiting("");
    }

    @Override
    public boolean onStartJob(JobParameters parameters) {
        // Sending would be measured along; when the measurement is over, it schedules.
        if (!new Settings(this).mayUpload() || Measuring.get().isRunning()) {
            return false;
        }
        SENDING.incrementAndGet();
        new Thread(() -> {
            boolean sent = false;
            try {
                sent = new Sender(this).sendWaiting();
            } catch (SQLException full) {
                // What was sent and could not be written down is sent again: a server has it once.
            } finally {
                SENDING.decrementAndGet();
                jobFinished(parameters, !sent);
            }
        }, "iostep-upload").start();
        return true;
    }

    @Override
    public boolean onStopJob(JobParameters parameters) {
        // The network went away: what waits is sent another time.
        return true;
    }
}
