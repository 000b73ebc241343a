package dev.iostep.phone.ui;

import android.content.Context;
import android.view.ContextThemeWrapper;
import android.view.View;
import android.view.ViewGroup;
import android.widget.TextView;

import dev.iostep.phone.R;

/** Titles, lines and tables, one below the other. */
final class Sections {
    private final Context context;
    private final ViewGroup place;

    Sections(Context context, ViewGroup place) {
        this.context = context;
        this.place = place;
        place.removeAllViews();
    }

    void title(int words) {
        TextView title = text(R.style.Text_Title, context.getString(words));
        if (android.os.Build.VERSION.SDK_INT >= android.os.Build.VERSION_CODES.P) {
            title.setAccessibilityHeading(true);
        }
    }

    void line(String words) {
        text(R.style.Text, words);
    }

    void quiet(String words) {
        text(R.style.Text_Quiet, words);
    }

    /** A value below what it is of; both are read aloud as one. */
    void value(String name, String words) {
        TextView above = text(R.style.Text_Quiet, name);
        above.setImportantForAccessibility(View.IMPORTANT_FOR_ACCESSIBILITY_NO);
        text(R.style.Text, words).setContentDescription(name + ": " + words);
    }

    void warning(String words) {
        text(R.style.Text_Warning, words);
    }

    void view(View view) {
        place.addView(view);
    }

    private TextView text(int style, String words) {
        TextView text = new TextView(new ContextThemeWrapper(context, style), null, 0, style);
        text.setText(words);
        place.addView(text, new ViewGroup.LayoutParams(ViewGroup.LayoutParams.MATCH_PARENT,
                ViewGroup.LayoutParams.WRAP_CONTENT));
        return text;
    }
}
