package dev.iostep.phone.ui;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import android.content.res.TypedArray;
import android.content.res.XmlResourceParser;
import android.graphics.Color;
import android.os.Build;

import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;
import org.xmlpull.v1.XmlPullParser;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

import dev.iostep.phone.Phone;
import dev.iostep.phone.R;

/** What Android reads of the package before any code runs. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = {26, 35})
public final class PackageTest {
    @Rule public final Phone phone = new Phone();

    /** White signs on a dark bar or dark ones on a light bar; Android 8.0 has white ones alone. */
    private void assertBarIsReadable(boolean light) {
        MainActivity main = Robolectric.buildActivity(MainActivity.class).create().get();
        // In the order that obtainStyledAttributes wants: by number.
        int[] names = Build.VERSION.SDK_INT >= Build.VERSION_CODES.O_MR1
                ? new int[] {android.R.attr.navigationBarColor,
                    android.R.attr.windowLightNavigationBar}
                : new int[] {android.R.attr.navigationBarColor};
        TypedArray values = main.getTheme().obtainStyledAttributes(names);
        boolean isLight = Color.luminance(values.getColor(0, 0)) > 0.5;
        boolean darkSigns = names.length > 1 && values.getBoolean(1, false);
        assertEquals(light, isLight);
        assertEquals(isLight, darkSigns);
    }

    @Test
    public void theNavigationBarCanBeRead() {
        assertBarIsReadable(Build.VERSION.SDK_INT >= Build.VERSION_CODES.O_MR1);
    }

    @Test
    @Config(qualifiers = "night")
    public void theNavigationBarCanBeReadAtNight() {
        assertBarIsReadable(false);
    }

    /** Each place where an app keeps something, by either way. */
    @Test
    @Config(sdk = 35)
    public void nothingGoesToAnotherPhone() throws Exception {
        // Robolectric's reader of manifests passes over it.
        String manifest = new String(Files.readAllBytes(Paths.get("android/AndroidManifest.xml")),
                StandardCharsets.UTF_8);
        assertTrue(manifest.contains("android:dataExtractionRules=\"@xml/transfer\""));
        Set<String> out = new HashSet<>();
        String way = "";
        XmlResourceParser xml = phone.app.getResources().getXml(R.xml.transfer);
        for (int event = xml.next(); event != XmlPullParser.END_DOCUMENT; event = xml.next()) {
            if (event != XmlPullParser.START_TAG) {
                continue;
            }
            assertFalse(xml.getName().equals("include"));
            if (xml.getName().equals("exclude")) {
                assertEquals(".", xml.getAttributeValue(null, "path"));
                out.add(way + xml.getAttributeValue(null, "domain"));
            } else {
                way = xml.getName() + " ";
            }
        }
        for (String each : new String[] {"cloud-backup ", "device-transfer "}) {
            for (String domain : Arrays.asList("root", "file", "database", "sharedpref",
                    "external", "device_root", "device_file", "device_database",
                    "device_sharedpref")) {
                assertTrue(each + domain, out.contains(each + domain));
            }
        }
    }
}
