package dev.iostep.phone.ui;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.os.Looper;

import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.android.controller.ActivityController;
import org.robolectric.annotation.Config;

import java.util.EnumMap;
import java.util.Map;

import dev.iostep.phone.Phone;
import dev.iostep.phone.R;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;

/** The tab with every parameter, by what is on the screen. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = {26, 35}, qualifiers = "w360dp-h740dp-xhdpi")
public final class SettingScreenTest {
    @Rule public final Phone phone = new Phone();

    /** Rows of one kind have views of one ID, by which Android would restore each from the last. */
    @Test
    public void turningThePhoneChangesNoSetting() {
        Settings settings = new Settings(phone.app);
        assertTrue(settings.set(Parameter.TRANSFER, "mmap"));
        assertTrue(settings.set(Parameter.JOURNAL, "wal"));
        assertTrue(settings.set(Parameter.VENDOR, "phone"));
        assertTrue(settings.set(Parameter.TABLES, "3"));
        Map<Parameter, String> before = texts(settings);
        ActivityController<MainActivity> screen =
                Robolectric.buildActivity(MainActivity.class).setup();
        screen.get().findViewById(R.id.tab_setting).performClick();
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals(before, texts(settings));
        screen.recreate();
        shadowOf(Looper.getMainLooper()).idle();
        assertEquals(before, texts(settings));
    }

    private static Map<Parameter, String> texts(Settings settings) {
        Map<Parameter, String> texts = new EnumMap<>(Parameter.class);
        for (Parameter parameter : Parameter.values()) {
            texts.put(parameter, settings.text(parameter));
        }
        return texts;
    }
}
