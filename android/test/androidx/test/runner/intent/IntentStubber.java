package androidx.test.runner.intent;

import android.app.Instrumentation;
import android.content.Intent;

/** Answers for other apps. */
public interface IntentStubber {
    Instrumentation.ActivityResult getActivityResultForIntent(Intent intent);
}
