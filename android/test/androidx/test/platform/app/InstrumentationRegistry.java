package androidx.test.platform.app;

import android.app.Instrumentation;
import android.os.Bundle;

/** Keeps the instrumentation that Robolectric registers. */
public final class InstrumentationRegistry {
    private static Instrumentation registered;
    private static Bundle arguments;

    public static void registerInstance(Instrumentation instrumentation, Bundle bundle) {
        registered = instrumentation;
        arguments = bundle;
    }

    public static Instrumentation getInstrumentation() {
        if (registered == null) {
            throw new IllegalStateException("no instrumentation is registered");
        }
        return registered;
    }

    public static Bundle getArguments() {
        return arguments;
    }
}
