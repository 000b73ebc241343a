package dev.iostep.phone.measure;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.content.ComponentName;
import android.content.Context;
import android.content.ContextWrapper;
import android.content.Intent;
import android.os.Environment;
import android.os.Looper;
import android.os.PowerManager;
import android.os.Process;
import android.os.UserHandle;
import android.os.storage.StorageManager;

import org.junit.Rule;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.Robolectric;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.android.controller.ServiceController;
import org.robolectric.annotation.Config;
import org.robolectric.shadows.ShadowEnvironment;
import org.robolectric.shadows.ShadowPowerManager;
import org.robolectric.shadows.StorageVolumeBuilder;

import java.io.File;
import java.nio.file.Files;
import java.util.List;

import dev.iostep.phone.Phone;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.settings.Parameter;
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

    /** Begins a run of a test, with this in the engine's place; the service is created. */
    private ServiceController<MeasureService> begin(String engine) throws Exception {
        phone.engine(engine);
        Settings settings = new Settings(phone.app);
        settings.set(Parameter.VENDOR, "own");
        List<Step> steps = Button.SQLITE.plan(settings, new WriteEstimate(workload -> 0));
        assertTrue(MeasureService.begin(phone.app, steps, Storage.all(phone.app).get(0)));
        return Robolectric.buildService(MeasureService.class,
                shadowOf(phone.app).getNextStartedService()).create();
    }

    /** An engine that ends by nobody's will but the app's, with its number in a file. */
    private static String endless(File number) {
        return "echo $$ >" + number + ".new; mv " + number + ".new " + number + "; exec sleep 600";
    }

    private static void assertEnds(File number, String trouble) throws Exception {
        Phone.await("the end", () -> !Measuring.get().isRunning());
        assertTrue(Measuring.get().trouble(), Measuring.get().trouble().contains(trouble));
        long engine = Long.parseLong(Files.readAllLines(number.toPath()).get(0));
        assertFalse("the engine goes on",
                ProcessHandle.of(engine).map(ProcessHandle::isAlive).orElse(false));
    }

    /** Its permission may be gone, its type refused, the app in the background again. */
    @Test
    public void aServiceThatMayNotBeShownIsTheEndOfTheRun() throws Exception {
        File number = new File(phone.directory(), "number");
        ServiceController<MeasureService> service = begin(endless(number));
        Phone.await("the engine", number::exists);
        shadowOf(service.get()).setThrowInStartForeground(new SecurityException("no permission"));
        service.startCommand(0, 1);
        assertTrue(shadowOf(service.get()).isStoppedBySelf());
        service.destroy();
        assertEnds(number, "does not let the test begin: no permission");
        assertFalse(lock().isHeld());
    }

    @Test
    public void anEngineEndsWithTheService() throws Exception {
        File number = new File(phone.directory(), "number");
        ServiceController<MeasureService> service = begin(endless(number)).startCommand(0, 1);
        Phone.await("the engine", number::exists);
        service.destroy();
        assertEnds(number, "Android ended the service");
        assertEquals(1, History.of(phone.app).runs(null, Run.FAILED).size());
    }

    private static PowerManager.WakeLock lock() {
        return ShadowPowerManager.getLatestWakeLock();
    }

    @Test
    public void theProcessorIsAwakeWhileARunIsUnderWay() throws Exception {
        for (String end : new String[] {
            "exec " + System.getProperty("iostep.engine") + " \"$@\"", "exit 1"}) {
            ShadowPowerManager.reset();
            File let = new File(phone.directory(), "let");
            ServiceController<MeasureService> service = begin(
                    "while [ ! -e " + let + " ]; do sleep 0.05; done; " + end).startCommand(0, 1);
            shadowOf(Looper.getMainLooper()).idle();
            assertTrue(Measuring.get().isRunning());
            assertTrue("while it runs", lock().isHeld());
            assertTrue(let.createNewFile());
            Phone.await("the end", () -> !Measuring.get().isRunning());
            assertTrue(shadowOf(service.get()).isStoppedBySelf());
            service.destroy();
            assertFalse("after it: " + Measuring.get().trouble(), lock().isHeld());
            assertEquals(end.equals("exit 1"), Measuring.get().trouble() != null);
        }
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
        shadowOf(phone.app.getSystemService(StorageManager.class)).addStorageVolume(
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
