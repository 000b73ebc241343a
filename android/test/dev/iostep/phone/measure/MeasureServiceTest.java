package dev.iostep.phone.measure;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import android.content.ComponentName;
import android.content.Context;
import android.content.ContextWrapper;
import android.content.Intent;
import android.os.Environment;
import android.os.Process;
import android.os.UserHandle;
import android.os.storage.StorageManager;

import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.Shadows;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowEnvironment;
import org.robolectric.shadows.StorageVolumeBuilder;

import java.io.File;
import java.util.List;

import dev.iostep.phone.Phone;
import dev.iostep.phone.history.History;
import dev.iostep.phone.settings.Settings;

/** What Android says to the beginning of a run, and where it may write. */
@RunWith(RobolectricTestRunner.class)
@Config(sdk = {26, 35})
public final class MeasureServiceTest {
    @Rule public final Phone phone = new Phone();

    /** From Android 12 on none begins from the background. */
    @Test
    public void aServiceThatMayNotBeginIsTheEndOfTheRun() {
        Context background = new ContextWrapper(phone.app) {
            @Override
            public Context getApplicationContext() {
                return this;
            }

            @Override
            public ComponentName startForegroundService(Intent service) {
                throw new IllegalStateException("not allowed");
            }
        };
        List<Step> steps = Button.SQLITE.plan(new Settings(phone.app),
                new WriteEstimate(workload -> 0));
        assertFalse(MeasureService.begin(background, steps, Storage.all(phone.app).get(0)));
        assertFalse(Measuring.get().isRunning());
        assertTrue(Measuring.get().trouble(),
                Measuring.get().trouble().contains("does not let the test begin: not allowed"));
        assertEquals(0, History.of(phone.app).runs(null, null).size());
    }

    @Test
    public void aCardIsKnownByItsFilesystem() throws Exception {
        File[] directories = {phone.directory(), phone.directory(), null};
        File card = directories[1];
        for (File directory : directories) {
            if (directory != null) {
                ShadowEnvironment.setExternalStorageState(directory, Environment.MEDIA_MOUNTED);
            }
        }
        UserHandle user = Process.myUserHandle();
        Shadows.shadowOf(phone.app.getSystemService(StorageManager.class)).addStorageVolume(
                new StorageVolumeBuilder("card", card, "A card", user, Environment.MEDIA_MOUNTED)
                        .setFsUuid("1234-ABCD").build());
        List<Storage> all = Storage.all(new ContextWrapper(phone.app) {
            @Override
            public File[] getExternalFilesDirs(String type) {
                return directories;
            }
        });
        assertEquals(3, all.size());
        assertEquals("internal", all.get(0).volume);
        assertEquals("shared", all.get(1).volume);
        assertEquals("1234-ABCD", all.get(2).volume);
    }
}
