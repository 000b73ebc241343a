package dev.iostep.phone.ui;

import android.content.Context;
import android.graphics.Typeface;
import android.view.Gravity;
import android.view.View;
import android.view.ViewGroup;
import android.widget.HorizontalScrollView;
import android.widget.TableLayout;
import android.widget.TableRow;
import android.widget.TextView;

import dev.iostep.phone.R;

/** Rows of texts whose columns stand below each other; wider than the screen, it scrolls. */
final class Table {
    private final Context context;
    private final TableLayout table;

    Table(Context context) {
        this.context = context;
        table = new TableLayout(context);
    }

    /** The first row is the heading. */
    void row(String... cells) {
        boolean heading = table.getChildCount() == 0;
        TableRow row = new TableRow(context);
        int space = Math.round(8 * context.getResources().getDisplayMetrics().density);
        for (int column = 0; column < cells.length; column++) {
            TextView cell = new TextView(context);
            cell.setText(cells[column]);
            cell.setTextSize(14);
            cell.setTextColor(context.getColor(heading ? R.color.text_quiet : R.color.text));
            cell.setTypeface(null, heading ? Typeface.BOLD : Typeface.NORMAL);
            cell.setGravity(column == 0 ? Gravity.START : Gravity.END);
            cell.setPaddingRelative(column == 0 ? 0 : space, space / 2, space, space / 2);
            row.addView(cell);
        }
        table.addView(row);
    }

    /** All of it, for a list of views. */
    View view() {
        HorizontalScrollView scroll = new HorizontalScrollView(context);
        scroll.addView(table, new ViewGroup.LayoutParams(ViewGroup.LayoutParams.WRAP_CONTENT,
                ViewGroup.LayoutParams.WRAP_CONTENT));
        return scroll;
    }
}
