package dev.iostep.phone.settings;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;

@RunWith(RobolectricTestRunner.class)
@Config(sdk = {26, 35})
public final class SettingsTest {
    private final Settings settings = new Settings(RuntimeEnvironment.getApplication());

    @Test
    public void sizesAreReadAsPeopleWriteThem() {
        assertEquals(4096, Size.parse("4KiB"));
        assertEquals(4096, Size.parse(" 4k "));
        assertEquals(10L << 20, Size.parse("10 MiB"));
        assertEquals(100, Size.parse("100"));
        for (String text : new String[] {"", "KiB", "-1", "4.5MiB", "4TiB", "999999999999GiB"}) {
            assertEquals(text, -1, Size.parse(text));
        }
    }

    @Test
    public void everyDefaultIsAValueAndNoWrongOneIsKept() {
        for (Parameter parameter : Parameter.values()) {
            assertTrue(parameter.name(), parameter.takes(parameter.fallback));
            assertEquals(parameter.fallback, settings.text(parameter));
            String wrong = parameter.kind == Parameter.Kind.ADDRESS ? "ftp://x" : "x!";
            assertFalse(parameter.name(), settings.set(parameter, wrong));
            assertEquals(parameter.fallback, settings.text(parameter));
        }
        assertFalse(settings.set(Parameter.TABLES, "21"));
        assertTrue(settings.set(Parameter.TABLES, "20"));
        settings.reset();
        assertEquals(1, settings.number(Parameter.TABLES));
    }

    @Test
    public void anotherServerHasToBeAgreedToAnew() {
        settings.agree(true);
        assertFalse("there is no server", settings.mayUpload());
        assertTrue(settings.set(Parameter.SERVER, "http://127.0.0.1:7370"));
        settings.agree(true);
        assertTrue(settings.mayUpload());
        assertTrue(settings.set(Parameter.SERVER, "http://127.0.0.1:7371"));
        assertFalse(settings.mayUpload());
        settings.agree(true);
        settings.agree(false);
        assertFalse(settings.mayUpload());
    }
}
