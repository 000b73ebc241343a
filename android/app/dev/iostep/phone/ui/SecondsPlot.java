package dev.iostep.phone.ui;

import android.content.Context;
import android.graphics.Canvas;
import android.graphics.Paint;
import android.util.AttributeSet;
import android.view.View;

import dev.iostep.phone.R;

/** Operations a second, by second: a bar for each, from the start side to the end side. */
public final class SecondsPlot extends View {
    private static final float GAP = 0.15f;

    private final Paint bars = new Paint(Paint.ANTI_ALIAS_FLAG);
    private final Paint words = new Paint(Paint.ANTI_ALIAS_FLAG);
    private double[] rates = {};
    private String greatest = "";
    private String zero = "";

    public SecondsPlot(Context context, AttributeSet attributes) {
        super(context, attributes);
        bars.setColor(context.getColor(R.color.accent));
        words.setColor(context.getColor(R.color.text_quiet));
        words.setTextSize(12 * getResources().getDisplayMetrics().scaledDensity);
    }

    void show(double[] rates) {
        this.rates = rates;
        double most = 0;
        double sum = 0;
        for (double rate : rates) {
            most = Math.max(most, rate);
            sum += rate;
        }
        greatest = Words.number(getContext(), most);
        zero = Words.number(getContext(), 0);
        // A picture says nothing to who does not see it.
        setContentDescription(getContext().getString(R.string.plot, rates.length, greatest,
                Words.number(getContext(), rates.length == 0 ? 0 : sum / rates.length)));
        setVisibility(rates.length < 2 ? GONE : VISIBLE);
        invalidate();
    }

    @Override
    protected void onDraw(Canvas canvas) {
        double most = 0;
        for (double rate : rates) {
            most = Math.max(most, rate);
        }
        float line = words.getTextSize() * 1.3f;
        float scale = Math.max(words.measureText(greatest), words.measureText(zero)) + line / 2;
        boolean rtl = getLayoutDirection() == LAYOUT_DIRECTION_RTL;
        float left = rtl ? 0 : scale;
        float width = getWidth() - scale;
        float height = getHeight() - line / 2;
        words.setTextAlign(rtl ? Paint.Align.RIGHT : Paint.Align.LEFT);
        float edge = rtl ? getWidth() : 0;
        canvas.drawText(greatest, edge, words.getTextSize(), words);
        canvas.drawText(zero, edge, height, words);
        float each = width / rates.length;
        for (int second = 0; second < rates.length; second++) {
            int place = rtl ? rates.length - 1 - second : second;
            float begin = left + place * each;
            float top = most > 0 ? (float) (height * (1 - rates[second] / most)) : height;
            canvas.drawRect(begin + each * GAP, top, begin + each * (1 - GAP), height, bars);
        }
    }
}
