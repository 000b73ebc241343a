package androidx.test.runner.lifecycle;

/** Keeps the monitor. */
public final class ActivityLifecycleMonitorRegistry {
    private static ActivityLifecycleMonitor registered;

    public static void registerInstance(ActivityLifecycleMonitor monitor) {
        registered = monitor;
    }

    public static ActivityLifecycleMonitor getInstance() {
        return registered;
    }
}
