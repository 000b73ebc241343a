package androidx.test.internal.platform;

/** Says on which thread one is. */
public interface ThreadChecker {
    void checkMainThread();

    void checkNotMainThread();
}
