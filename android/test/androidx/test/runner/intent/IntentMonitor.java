package androidx.test.runner.intent;

/** Is told of intents. */
public interface IntentMonitor {}
