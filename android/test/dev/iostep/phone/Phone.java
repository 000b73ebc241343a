package dev.iostep.phone;

import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.app.Application;
import android.content.Intent;
import android.os.BatteryManager;
import android.os.Looper;
import android.os.PowerManager;

import org.junit.rules.ExternalResource;
import org.junit.rules.TemporaryFolder;
import org.robolectric.RuntimeEnvironment;

import dev.iostep.phone.history.History;
import dev.iostep.phone.measure.Storage;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.function.BooleanSupplier;

/**
 * A phone for one test: charged, cool, with the engine where Android unpacks libraries; one for arm64
 * runs by emulation.
 */
public final class Phone extends ExternalResource {
    private static final long PATIENCE_MS = 120_000;
    /** A storage of runs that were not run. */
    public static final Storage INSIDE =
            new Storage(new File("/nowhere"), "internal", "Internal storage");

    private final TemporaryFolder folder = new TemporaryFolder(new File("/var/tmp"));
    public Application app;

    @Override
    protected void before() throws IOException {
        folder.create();
        app = RuntimeEnvironment.getApplication();
        File libraries = folder.newFolder("lib");
        engine(libraries, "exec " + System.getProperty("iostep.engine") + " \"$@\"");
        app.getApplicationInfo().nativeLibraryDir = libraries.getPath();
        battery(80, true);
    }

    @Override
    protected void after() {
        History.of(app).close();
        folder.delete();
    }

    /** Puts a script in the place of the engine. */
    public void engine(String script) throws IOException {
        engine(new File(app.getApplicationInfo().nativeLibraryDir), script);
    }

    private static void engine(File libraries, String script) throws IOException {
        File program = new File(libraries, "libiostep.so");
        Files.write(program.toPath(), ("#!/bin/sh\n" + script + "\n")
                .getBytes(StandardCharsets.UTF_8));
        assertTrue(program.setExecutable(true));
    }

    /** The engine as it is built for this machine: qemu-user 7.2 does not tell of O_DIRECT. */
    public void engineOfThisMachine() throws IOException {
        engine("exec " + System.getProperty("iostep.server") + " \"$@\"");
    }

    /** A directory of a real filesystem, to measure. */
    public File directory() throws IOException {
        return folder.newFolder();
    }

    public void battery(int percent, boolean plugged) {
        app.sendStickyBroadcast(new Intent(Intent.ACTION_BATTERY_CHANGED)
                .putExtra(BatteryManager.EXTRA_LEVEL, percent)
                .putExtra(BatteryManager.EXTRA_SCALE, 100)
                .putExtra(BatteryManager.EXTRA_PLUGGED,
                        plugged ? BatteryManager.BATTERY_PLUGGED_USB : 0));
    }

    public void heat(int status) {
        shadowOf(app.getSystemService(PowerManager.class)).setCurrentThermalStatus(status);
    }

    public void saver(boolean on) {
        shadowOf(app.getSystemService(PowerManager.class)).setIsPowerSaveMode(on);
    }

    /** Lets the main thread work until something is so. */
    public static void await(String what, BooleanSupplier condition) {
        long until = System.currentTimeMillis() + PATIENCE_MS;
        while (!condition.getAsBoolean()) {
            shadowOf(Looper.getMainLooper()).idle();
            assertTrue("it never came: " + what, System.currentTimeMillis() < until);
            try {
                Thread.sleep(10);
            } catch (InterruptedException error) {
                throw new AssertionError(error);
            }
        }
        shadowOf(Looper.getMainLooper()).idle();
    }
}
