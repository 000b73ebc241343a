package dev.iostep.phone.ui;

import android.os.Handler;
import android.os.Looper;

/** Work that a screen waits for, without keeping the main thread from drawing. */
final class Background {
    /** What is made. */
    interface Work<T> {
        T make();
    }

    /** Who takes it, on the main thread. */
    interface Then<T> {
        void take(T made);
    }

    private Background() {}

    static <T> void run(Work<T> work, Then<T> then) {
        Handler main = new Handler(Looper.getMainLooper());
        new Thread(() -> {
            T made = work.make();
            main.post(() -> then.take(made));
        }, "iostep-screen").start();
    }
}
