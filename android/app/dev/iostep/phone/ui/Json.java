package dev.iostep.phone.ui;

import android.app.AlertDialog;
import android.view.View;
import android.widget.TextView;

/** A dialog's text that holds JSON. */
final class Json {
    private Json() {}

    /** A line of brackets alone would be mirrored in a language that is written from the right. */
    static void fromTheLeft(AlertDialog shown) {
        shown.<TextView>findViewById(android.R.id.message)
                .setTextDirection(View.TEXT_DIRECTION_FIRST_STRONG_LTR);
    }
}
