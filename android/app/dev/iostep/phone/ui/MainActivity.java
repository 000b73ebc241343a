package dev.iostep.phone.ui;

import android.app.Activity;
import android.os.Bundle;
import android.view.LayoutInflater;
import android.view.View;
import android.view.ViewGroup;

import dev.iostep.phone.R;

/** The three tabs. */
public final class MainActivity extends Activity {
    private static final String TAB = "tab";

    /** A tab's content. */
    interface Page {
        void onShow();

        void onHide();
    }

    private enum Tab {
        MEASURE(R.id.tab_measure, R.layout.measure),
        HISTORY(R.id.tab_history, R.layout.history),
        SETTING(R.id.tab_setting, R.layout.setting);

        final int button;
        final int layout;

        Tab(int button, int layout) {
            this.button = button;
            this.layout = layout;
        }
    }

    private Tab tab;
    private Page page;
    private boolean visible;

    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        setContentView(R.layout.main);
        for (Tab each : Tab.values()) {
            findViewById(each.button).setOnClickListener(view -> open(each));
        }
        open(state == null ? Tab.MEASURE : Tab.valueOf(state.getString(TAB, Tab.MEASURE.name())));
    }

    private void open(Tab wanted) {
        hide();
        tab = wanted;
        ViewGroup place = findViewById(R.id.page);
        place.removeAllViews();
        View root = LayoutInflater.from(this).inflate(tab.layout, place, false);
        place.addView(root);
        switch (tab) {
            case MEASURE:
                page = new MeasurePage(this, root);
                break;
            case HISTORY:
                page = new HistoryPage(this, root);
                break;
            default:
                page = new SettingPage(this, root);
                break;
        }
        for (Tab each : Tab.values()) {
            findViewById(each.button).setSelected(each == tab);
        }
        if (visible) {
            page.onShow();
        }
    }

    private void hide() {
        if (visible && page != null) {
            page.onHide();
        }
    }

    @Override
    protected void onStart() {
        super.onStart();
        visible = true;
        page.onShow();
    }

    @Override
    protected void onStop() {
        hide();
        visible = false;
        super.onStop();
    }

    @Override
    protected void onSaveInstanceState(Bundle state) {
        super.onSaveInstanceState(state);
        state.putString(TAB, tab.name());
    }
}
