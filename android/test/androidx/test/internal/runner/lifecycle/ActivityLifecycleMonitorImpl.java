package androidx.test.internal.runner.lifecycle;

import android.app.Activity;
import androidx.test.runner.lifecycle.ActivityLifecycleCallback;
import androidx.test.runner.lifecycle.ActivityLifecycleMonitor;
import androidx.test.runner.lifecycle.Stage;
import java.util.*;

/** Knows in which stage each activity is. */
public final class ActivityLifecycleMonitorImpl implements ActivityLifecycleMonitor {
    private final Map<Activity, Stage> stages = new LinkedHashMap<>();
    private final List<ActivityLifecycleCallback> callbacks = new ArrayList<>();

    public void signalLifecycleChange(Stage stage, Activity activity) {
        if (stage == Stage.DESTROYED) {
            stages.remove(activity);
        } else {
            stages.put(activity, stage);
        }
        for (ActivityLifecycleCallback callback : new ArrayList<>(callbacks)) {
            callback.onActivityLifecycleChanged(activity, stage);
        }
    }

    public void addLifecycleCallback(ActivityLifecycleCallback callback) {
        callbacks.add(callback);
    }

    public void removeLifecycleCallback(ActivityLifecycleCallback callback) {
        callbacks.remove(callback);
    }

    public Stage getLifecycleStageOf(Activity activity) {
        return stages.getOrDefault(activity, Stage.DESTROYED);
    }

    public Collection<Activity> getActivitiesInStage(Stage stage) {
        List<Activity> found = new ArrayList<>(stages.keySet());
        found.removeIf(activity -> stages.get(activity) != stage);
        return found;
    }
}
