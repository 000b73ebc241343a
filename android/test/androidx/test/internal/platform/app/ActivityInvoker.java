package androidx.test.internal.platform.app;

/** Starts activities; nothing here asks it to. */
public interface ActivityInvoker {}
