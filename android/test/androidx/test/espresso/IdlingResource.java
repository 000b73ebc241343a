package androidx.test.espresso;

/** Something to wait for. */
public interface IdlingResource {
    String getName();

    boolean isIdleNow();

    void registerIdleTransitionCallback(ResourceCallback callback);

    /** Who is told. */
    interface ResourceCallback {
        void onTransitionToIdle();
    }
}
