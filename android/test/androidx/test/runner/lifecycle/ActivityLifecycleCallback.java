package androidx.test.runner.lifecycle;

import android.app.Activity;

/** Is told of stages. */
public interface ActivityLifecycleCallback {
    void onActivityLifecycleChanged(Activity activity, Stage stage);
}
