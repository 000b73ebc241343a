package androidx.test.internal.platform.util;

/** Says what threads do when a test hangs. */
public final class TestOutputEmitter {
    public static void dumpThreadStates(String name) {}
}
