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

/**
 * Rows of texts whose columns stand below each other; wider than the screen, it scrolls. A row is read
 * aloud as one, each value with its column's heading.
 */
final class Table {
    /** Stands where there is no value. */
    static final String UNKNOWN = "–";

    private final Context context;
    private final TableLayout table;
    private String[] headings;

    Table(Context context) {
        this.context = context;
        table = new TableLayout(context);
    }

    /** The first row is the heading. */
    void row(String... cells) {
        boolean heading = headings == null;
        TableRow row = new TableRow(context);
        if (heading) {
            headings = cells;
        } else {
            row.setContentDescription(aloud(cells));
        }
        int space = Math.round(8 * context.getResources().getDisplayMetrics().density);
        for (int column = 0; column < cells.length; column++) {
            TextView cell = new TextView(context);
            cell.setText(cells[column]);
            cell.setTextSize(14);
            cell.setTextColor(context.getColor(heading ? R.color.text_quiet : R.color.text));
            cell.setTypeface(null, heading ? Typeface.BOLD : Typeface.NORMAL);
            cell.setGravity(column == 0 ? Gravity.START : Gravity.END);
            cell.setPaddingRelative(column == 0 ? 0 : space, space / 2, space, space / 2);
            cell.setImportantForAccessibility(View.IMPORTANT_FOR_ACCESSIBILITY_NO);
            row.addView(cell);
        }
        table.addView(row);
    }

    private String aloud(String[] cells) {
        StringBuilder words = new StringBuilder(cells[0]);
        for (int column = 1; column < cells.length; column++) {
            // A dash is not read.
            String value = cells[column].equals(UNKNOWN)
                    ? context.getString(R.string.not_known) : cells[column];
            words.append(column == 1 ? ": " : ", ").append(headings[column]).append(' ')
                    .append(value);
        }
        return words.toString();
    }

    /** All of it, for a list of views. */
    View view() {
        HorizontalScrollView scroll = new HorizontalScrollView(context);
        scroll.addView(table, new ViewGroup.LayoutParams(ViewGroup.LayoutParams.WRAP_CONTENT,
                ViewGroup.LayoutParams.WRAP_CONTENT));
        return scroll;
    }
}
