package androidx.test.runner.lifecycle;

/** Stages of an application. */
public enum ApplicationStage { PRE_ON_CREATE, CREATED }
