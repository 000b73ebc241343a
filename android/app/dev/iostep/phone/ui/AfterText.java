package dev.iostep.phone.ui;

import android.text.Editable;
import android.text.TextWatcher;

/** Looks at what a field holds after each change. */
final class AfterText implements TextWatcher {
    /** Who looks. */
    interface Reader {
        void read(String text);
    }

    private final Reader reader;

    AfterText(Reader reader) {
        this.reader = reader;
    }

    @Override
    public void afterTextChanged(Editable text) {
        reader.read(text.toString());
    }

    @Override
    public void beforeTextChanged(CharSequence text, int start, int count, int after) {}

    @Override
    public void onTextChanged(CharSequence text, int start, int before, int count) {}
}
