package dev.iostep.phone.ui;

import static org.junit.Assert.assertTrue;

import android.graphics.Bitmap;
import android.graphics.Canvas;
import android.graphics.Rect;
import android.view.View;
import android.view.ViewGroup;
import android.widget.HorizontalScrollView;
import android.widget.ScrollView;
import android.widget.TextView;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** What of a screen can be seen, and found fault with. */
final class Screen {
    private static final int LEAST_TOUCH_DP = 48;

    private Screen() {}

    /** Every view below one. */
    static List<View> views(View root) {
        List<View> views = new ArrayList<>();
        views.add(root);
        if (root instanceof ViewGroup) {
            ViewGroup group = (ViewGroup) root;
            for (int at = 0; at < group.getChildCount(); at++) {
                views.addAll(views(group.getChildAt(at)));
            }
        }
        return views;
    }

    /** All texts that can be seen, one a line. */
    static String text(View root) {
        StringBuilder text = new StringBuilder();
        for (View view : views(root)) {
            if (view instanceof TextView && view.isShown()) {
                text.append(((TextView) view).getText()).append('\n');
            }
        }
        return text.toString();
    }

    /** What TalkBack stops at and reads, in order: what has a name or a text, and is not left out. */
    static List<String> read(View root) {
        List<String> read = new ArrayList<>();
        for (View view : views(root)) {
            CharSequence words = view.getContentDescription();
            if (words == null && view instanceof TextView) {
                words = ((TextView) view).getText();
            }
            if (view.isShown() && words != null && words.length() > 0
                    && view.isImportantForAccessibility()) {
                read.add(words.toString());
            }
        }
        return read;
    }

    /**
     * Faults that a machine can see: a text that is cut off, a place to touch that is too small or
     * has no name for who does not see it.
     */
    static List<String> faults(View root) {
        List<String> faults = new ArrayList<>();
        float density = root.getResources().getDisplayMetrics().density;
        for (View view : views(root)) {
            if (!view.isShown()) {
                continue;
            }
            if (view instanceof TextView) {
                TextView text = (TextView) view;
                boolean cut = text.getLayout() != null && text.getLayout().getHeight()
                        > text.getHeight() - text.getCompoundPaddingTop()
                                - text.getCompoundPaddingBottom() + 1;
                if (cut) {
                    faults.add("cut off: " + text.getText());
                }
            }
            if (view.isClickable() && view.isEnabled()) {
                if (view.getHeight() < LEAST_TOUCH_DP * density - 1) {
                    faults.add("too small to touch: " + view + text(view));
                }
                if (view.getContentDescription() == null && text(view).trim().isEmpty()) {
                    faults.add("no name: " + view);
                }
            }
            if (!(view instanceof HorizontalScrollView) && isBeside(view)) {
                faults.add("beside the screen: " + view + text(view));
            }
        }
        return faults;
    }

    /** True for what sticks out to a side where nothing scrolls. */
    private static boolean isBeside(View view) {
        for (Object up = view.getParent(); up instanceof View; up = ((View) up).getParent()) {
            if (up instanceof HorizontalScrollView) {
                return false;
            }
        }
        int[] at = new int[2];
        view.getLocationInWindow(at);
        int width = view.getRootView().getWidth();
        return at[0] < 0 || at[0] + view.getWidth() > width;
    }

    /** Draws all of it, also what has to be scrolled to. */
    static void shoot(View root, String name) throws IOException {
        ScrollView scroll = null;
        for (View view : views(root)) {
            if (view instanceof ScrollView) {
                scroll = (ScrollView) view;
            }
        }
        Bitmap seen = draw(root);
        save(seen, name);
        if (scroll != null && scroll.getChildCount() > 0
                && scroll.getChildAt(0).getHeight() > scroll.getHeight()) {
            save(draw(scroll.getChildAt(0)), name + "-all");
        }
    }

    private static Bitmap draw(View view) {
        Rect size = new Rect(0, 0, view.getWidth(), view.getHeight());
        Bitmap bitmap = Bitmap.createBitmap(size.width(), size.height(), Bitmap.Config.ARGB_8888);
        Canvas canvas = new Canvas(bitmap);
        canvas.drawColor(view.getContext().getColor(dev.iostep.phone.R.color.background));
        view.draw(canvas);
        return bitmap;
    }

    private static void save(Bitmap bitmap, String name) throws IOException {
        File file = new File(System.getProperty("iostep.shots"), name + ".png");
        try (FileOutputStream out = new FileOutputStream(file)) {
            assertTrue(bitmap.compress(Bitmap.CompressFormat.PNG, 90, out));
        }
    }
}
