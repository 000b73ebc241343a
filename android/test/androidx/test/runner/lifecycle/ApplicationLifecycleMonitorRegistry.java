package androidx.test.runner.lifecycle;

/** Takes a monitor, which nobody asks for. */
public final class ApplicationLifecycleMonitorRegistry {
    public static void registerInstance(ApplicationLifecycleMonitor monitor) {}
}
