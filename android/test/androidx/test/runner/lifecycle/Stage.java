package androidx.test.runner.lifecycle;

/** Stages of an activity. */
public enum Stage { PRE_ON_CREATE, CREATED, STARTED, RESUMED, PAUSED, STOPPED, RESTARTED, DESTROYED }
