package dev.iostep.phone.measure;

import android.content.Context;
import android.content.Intent;
import android.content.IntentFilter;
import android.os.BatteryManager;
import android.os.Build;
import android.os.PowerManager;
import android.os.SystemClock;

import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** The state of the phone that a figure depends on, at one moment. */
public final class Conditions {
    /** Seconds ahead for which the headroom is asked. */
    private static final int AHEAD = 10;
    private static final int UNKNOWN = -1;
    /** The status that a headroom of 1 stands for. */
    private static final int SEVERE = 3;
    /** Android tells no headroom to who asked within the last second. */
    private static final long HEADROOM_HOLDS_MS = 2000;

    private static float lastHeadroom = Float.NaN;
    private static long lastHeadroomMs;

    /** Percent; -1 where Android does not tell. */
    public final int battery;
    public final boolean charging;
    public final boolean saver;
    /** 0, none, to 6, shutdown; -1 before Android 10. */
    public final int thermal;
    /** Share of the heat at which Android throttles hard; NaN where it does not tell. */
    public final float headroom;

    Conditions(int battery, boolean charging, boolean saver, int thermal, float headroom) {
        this.battery = battery;
        this.charging = charging;
        this.saver = saver;
        this.thermal = thermal;
        this.headroom = headroom;
    }

    public static Conditions now(Context context) {
        Intent state = context.registerReceiver(null,
                new IntentFilter(Intent.ACTION_BATTERY_CHANGED));
        int level = UNKNOWN;
        boolean charging = false;
        if (state != null) {
            int scale = state.getIntExtra(BatteryManager.EXTRA_SCALE, UNKNOWN);
            int of = state.getIntExtra(BatteryManager.EXTRA_LEVEL, UNKNOWN);
            level = scale > 0 && of >= 0 ? 100 * of / scale : UNKNOWN;
            charging = state.getIntExtra(BatteryManager.EXTRA_PLUGGED, 0) != 0;
        }
        PowerManager power = context.getSystemService(PowerManager.class);
        int thermal = Build.VERSION.SDK_INT >= Build.VERSION_CODES.Q
                ? power.getCurrentThermalStatus() : UNKNOWN;
        float headroom = Build.VERSION.SDK_INT >= Build.VERSION_CODES.R
                ? headroom(power.getThermalHeadroom(AHEAD), SystemClock.elapsedRealtime())
                : Float.NaN;
        return new Conditions(level, charging, power.isPowerSaveMode(), thermal, headroom);
    }

    /** What was told, or the value before while it holds. */
    static synchronized float headroom(float told, long nowMs) {
        if (!Float.isNaN(told)) {
            lastHeadroom = told;
            lastHeadroomMs = nowMs;
        } else if (nowMs < lastHeadroomMs || nowMs - lastHeadroomMs > HEADROOM_HOLDS_MS) {
            lastHeadroom = Float.NaN;
        }
        return lastHeadroom;
    }

    /** The status, or that at which the phone will be within seconds by its headroom. */
    private int heat() {
        return headroom >= 1 ? Math.max(thermal, SEVERE) : thermal;
    }

    JSONObject json() throws JSONException {
        return new JSONObject()
                .put("battery_percent", battery == UNKNOWN ? JSONObject.NULL : battery)
                .put("charging", charging)
                .put("battery_saver", saver)
                .put("thermal_status", thermal == UNKNOWN ? JSONObject.NULL : thermal)
                .put("thermal_headroom",
                        Float.isNaN(headroom) ? JSONObject.NULL : (double) headroom);
    }

    /** Both as they are kept beside a result, with the warnings that follow from them. */
    public static JSONObject around(Conditions before, Conditions after) throws JSONException {
        return new JSONObject().put("before", before.json()).put("after", after.json())
                .put("warnings", warnings(before, after));
    }

    /** Warnings of a result, by the names of docs/format-bench.md. */
    static JSONArray warnings(Conditions before, Conditions after) throws JSONException {
        JSONArray warnings = new JSONArray();
        if (!before.charging || !after.charging) {
            warnings.put(new JSONObject().put("kind", "on_battery"));
        }
        if (before.saver || after.saver) {
            warnings.put(new JSONObject().put("kind", "battery_saver"));
        }
        int heat = Math.max(before.heat(), after.heat());
        if (heat > 0) {
            warnings.put(new JSONObject().put("kind", "hot").put("status", heat));
        }
        return warnings;
    }
}
