package dev.iostep.phone.measure;

import android.app.Notification;
import android.app.NotificationChannel;
import android.app.NotificationManager;
import android.app.PendingIntent;
import android.app.Service;
import android.content.Context;
import android.content.Intent;
import android.os.IBinder;
import android.os.PowerManager;
import android.os.SystemClock;

import java.util.List;

import dev.iostep.phone.R;
import dev.iostep.phone.ui.MainActivity;
import dev.iostep.phone.ui.Words;

/** Keeps the process and the processor awake while a run is under way, and says so. */
public final class MeasureService extends Service implements Measuring.Listener {
    static final String STOP = "dev.iostep.phone.STOP";
    private static final String CHANNEL = "run";
    private static final int NOTIFICATION = 1;
    /** A lock that is never let go of would empty the battery. */
    private static final long LONGEST_MS = 6 * 3600 * 1000L;

    /** How often the notification is drawn. */
    private static final long APART_MS = 2000;

    private PowerManager.WakeLock awake;
    private long shownMs;
    /** True once it is over by its own will. */
    private boolean over;

    /** Begins a run; false if one is under way. */
    public static boolean begin(Context context, List<Step> steps, Storage storage) {
        Stop stop = Measuring.get().begin(steps);
        if (stop == null) {
            return false;
        }
        Context app = context.getApplicationContext();
        try {
            app.startForegroundService(new Intent(app, MeasureService.class));
        } catch (RuntimeException refused) {
            // From the background Android 12 and later allow none.
            Measuring.get().end(app.getString(R.string.failed_start, refused.getMessage()));
            return false;
        }
        new Thread(new Measurement(app, steps, storage, stop), "iostep-measurement").start();
        return true;
    }

    @Override
    public void onCreate() {
        super.onCreate();
        NotificationManager manager = getSystemService(NotificationManager.class);
        manager.createNotificationChannel(new NotificationChannel(CHANNEL,
                getString(R.string.channel_run), NotificationManager.IMPORTANCE_LOW));
        awake = getSystemService(PowerManager.class)
                .newWakeLock(PowerManager.PARTIAL_WAKE_LOCK, "iostep:run");
        awake.acquire(LONGEST_MS);
        Measuring.get().add(this);
    }

    @Override
    public int onStartCommand(Intent intent, int flags, int id) {
        try {
            startForeground(NOTIFICATION, notification());
        } catch (RuntimeException refused) {
            // Android would end the process within the run, and keep no processor awake for it.
            Measuring.get().stop(getString(R.string.failed_start, refused.getMessage()));
            over = true;
            stopSelf();
            return START_NOT_STICKY;
        }
        if (intent != null && STOP.equals(intent.getAction())) {
            Measuring.get().stop();
        }
        onMeasuring();
        // A run that was killed is not begun anew: the person is told that it died.
        return START_NOT_STICKY;
    }

    @Override
    public void onMeasuring() {
        if (!Measuring.get().isRunning()) {
            over = true;
            stopForeground(true);
            stopSelf();
            return;
        }
        // Drawing it costs another process's time, which is measured along.
        long now = SystemClock.elapsedRealtime();
        if (now - shownMs >= APART_MS) {
            shownMs = now;
            getSystemService(NotificationManager.class).notify(NOTIFICATION, notification());
        }
    }

    private Notification notification() {
        Measuring measuring = Measuring.get();
        PendingIntent open = PendingIntent.getActivity(this, 0,
                new Intent(this, MainActivity.class), PendingIntent.FLAG_IMMUTABLE);
        PendingIntent stop = PendingIntent.getService(this, 1,
                new Intent(this, MeasureService.class).setAction(STOP),
                PendingIntent.FLAG_IMMUTABLE);
        return new Notification.Builder(this, CHANNEL)
                .setSmallIcon(R.drawable.icon_notification)
                .setContentTitle(getString(R.string.measuring))
                .setContentText(Words.progress(this, measuring))
                .setProgress(1000, (int) (1000 * measuring.share()), false)
                .setOngoing(true)
                .setOnlyAlertOnce(true)
                .setContentIntent(open)
                .addAction(new Notification.Action.Builder(null, getString(R.string.stop), stop)
                        .build())
                .build();
    }

    @Override
    public void onDestroy() {
        Measuring.get().remove(this);
        if (!over) {
            // Without it nothing keeps the engine's process nor the processor from being put to rest.
            Measuring.get().stop(getString(R.string.service_ended));
        }
        if (awake.isHeld()) {
            awake.release();
        }
        super.onDestroy();
    }

    @Override
    public IBinder onBind(Intent intent) {
        return null;
    }
}
