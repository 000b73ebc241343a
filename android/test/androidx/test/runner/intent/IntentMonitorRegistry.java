package androidx.test.runner.intent;

/** Takes a monitor, which nobody asks for. */
public final class IntentMonitorRegistry {
    public static void registerInstance(IntentMonitor monitor) {}
}
