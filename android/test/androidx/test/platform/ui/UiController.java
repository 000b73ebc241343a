package androidx.test.platform.ui;

import android.view.KeyEvent;
import android.view.MotionEvent;

/** Makes events. */
public interface UiController {
    boolean injectMotionEvent(MotionEvent event) throws InjectEventSecurityException;

    boolean injectKeyEvent(KeyEvent event) throws InjectEventSecurityException;

    boolean injectString(String text) throws InjectEventSecurityException;

    void loopMainThreadUntilIdle();

    void loopMainThreadForAtLeast(long ms);
}
