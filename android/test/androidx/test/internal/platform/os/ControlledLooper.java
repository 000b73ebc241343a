package androidx.test.internal.platform.os;

/** Runs what a thread is to do. */
public interface ControlledLooper {
    void drainMainThreadUntilIdle();

    default boolean areDrawCallbacksSupported() {
        return true;
    }
}
