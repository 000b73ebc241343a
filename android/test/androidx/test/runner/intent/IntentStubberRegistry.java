package androidx.test.runner.intent;

/** Has nobody who answers for other apps. */
public final class IntentStubberRegistry {
    public static boolean isLoaded() {
        return false;
    }

    public static IntentStubber getInstance() {
        throw new IllegalStateException("none is registered");
    }
}
