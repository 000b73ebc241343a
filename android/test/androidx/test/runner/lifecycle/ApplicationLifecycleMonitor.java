package androidx.test.runner.lifecycle;

/** Is told of an application's stages. */
public interface ApplicationLifecycleMonitor {}
