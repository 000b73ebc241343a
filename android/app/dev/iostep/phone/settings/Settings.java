package dev.iostep.phone.settings;

import android.content.Context;
import android.content.SharedPreferences;

import java.util.Collections;
import java.util.HashSet;
import java.util.Set;

/** What the person set, kept by Android's preferences. */
public final class Settings {
    private static final String AGREED = "agreed";
    private static final String STORAGE = "storage";
    private static final String CUSTOM = "custom";
    private static final String ASKED_NOTIFICATIONS = "asked_notifications";

    private final SharedPreferences kept;

    public Settings(Context context) {
        kept = context.getSharedPreferences("settings", Context.MODE_PRIVATE);
    }

    /** The value; what an earlier version kept and this one does not take is as if nothing was set. */
    public String text(Parameter parameter) {
        String text = kept.getString(parameter.key(), parameter.fallback);
        return parameter.takes(text) ? text : parameter.fallback;
    }

    public long number(Parameter parameter) {
        return Long.parseLong(text(parameter));
    }

    public long bytes(Parameter parameter) {
        return Size.parse(text(parameter));
    }

    /** Sets it; the answer is false, and nothing is set, for what it does not take. */
    public boolean set(Parameter parameter, String text) {
        String trimmed = text.trim();
        if (!parameter.takes(trimmed)) {
            return false;
        }
        kept.edit().putString(parameter.key(), trimmed).apply();
        return true;
    }

    /** Everything as it was at first, but for what was agreed to. */
    public void reset() {
        SharedPreferences.Editor editor = kept.edit();
        for (Parameter parameter : Parameter.values()) {
            if (parameter.group != Parameter.Group.UPLOAD) {
                editor.remove(parameter.key());
            }
        }
        editor.apply();
    }

    /** Whether results may be sent to this server. Another address has to be agreed to anew. */
    public boolean mayUpload() {
        String server = text(Parameter.SERVER);
        return !server.isEmpty() && server.equals(kept.getString(AGREED, ""));
    }

    /** Whether they may be sent to this one: the address of Setting, which was agreed to. */
    public boolean mayUploadTo(String server) {
        return mayUpload() && server.equals(text(Parameter.SERVER));
    }

    /** The person saw what is sent to this server, and agreed; or does not any more. */
    public void agree(boolean agreed) {
        String server = agreed ? text(Parameter.SERVER) : "";
        kept.edit().putString(AGREED, server).apply();
    }

    /** The path of the storage to test, or null for the internal one. */
    public String storage() {
        return kept.getString(STORAGE, null);
    }

    public void setStorage(String path) {
        kept.edit().putString(STORAGE, path).apply();
    }

    /** Names of the tests of the custom button. */
    public Set<String> custom() {
        return new HashSet<>(kept.getStringSet(CUSTOM, Collections.<String>emptySet()));
    }

    public void setCustom(Set<String> names) {
        kept.edit().putStringSet(CUSTOM, new HashSet<>(names)).apply();
    }

    /** True once: a person who said no to notifications is not asked at every run. */
    public boolean takeNotificationQuestion() {
        boolean first = !kept.getBoolean(ASKED_NOTIFICATIONS, false);
        kept.edit().putBoolean(ASKED_NOTIFICATIONS, true).apply();
        return first;
    }
}
