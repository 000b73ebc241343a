package dev.iostep.phone.ui;

import android.os.Handler;
import android.os.Looper;

/** Work that a screen waits for, without keeping the main thread from drawing. */
public final class Background {
    /** What is made. */
    public interface Work<T> {
        T make();
    }

    /** Who takes it, on the main thread. */
    public interface Then<T> {
        void take(T made);
    }

    private Background() {}

    public static <T> void run(Work<T> work, Then<T> then) {
        Handler main = new Handler(Looper.getMainLooper());
        new Thread(() -> {
            T made = work.make();
            main.post(() -> then.take(made));
        }, "iostep-screen").start();
    }
}
