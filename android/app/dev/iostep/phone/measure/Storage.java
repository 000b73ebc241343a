package dev.iostep.phone.measure;

import android.content.Context;
import android.os.Environment;
import android.os.storage.StorageManager;
import android.os.storage.StorageVolume;

import java.io.File;
import java.util.ArrayList;
import java.util.List;

import dev.iostep.phone.R;
import dev.iostep.phone.history.Run;

/** A place where the app may write without a permission: inside, and on each external volume. */
public final class Storage {
    private static final String INTERNAL = "internal";
    private static final String SHARED = "shared";

    /** Where the tests' files go. */
    public final File directory;
    /** What it stays, in every language and slot: the UUID of a card's filesystem. */
    public final String volume;
    /** What people call it. */
    public final String name;

    public Storage(File directory, String volume, String name) {
        this.directory = directory;
        this.volume = volume;
        this.name = name;
    }

    public static List<Storage> all(Context context) {
        List<Storage> all = new ArrayList<>();
        all.add(new Storage(new File(context.getFilesDir(), "bench"), INTERNAL,
                context.getString(R.string.storage_internal)));
        File[] external = context.getExternalFilesDirs(null);
        for (int number = 0; number < external.length; number++) {
            // Null for a slot without a card.
            File directory = external[number];
            if (directory == null || !Environment.MEDIA_MOUNTED.equals(
                    Environment.getExternalStorageState(directory))) {
                continue;
            }
            String name = number == 0
                    ? context.getString(R.string.storage_shared)
                    : context.getString(R.string.storage_card, number);
            all.add(new Storage(new File(directory, "bench"), volume(context, directory, number),
                    name));
        }
        return all;
    }

    private static String volume(Context context, File directory, int number) {
        StorageVolume volume = context.getSystemService(StorageManager.class)
                .getStorageVolume(directory);
        String uuid = volume == null ? null : volume.getUuid();
        return uuid != null ? uuid : number == 0 ? SHARED : directory.getPath();
    }

    /** What a run's storage is called in the person's language. */
    public static String name(Context context, Run run) {
        if (INTERNAL.equals(run.volume)) {
            return context.getString(R.string.storage_internal);
        }
        return SHARED.equals(run.volume)
                ? context.getString(R.string.storage_shared) : run.storage;
    }

    /** The one of a path; the internal one where that is gone, as a card that was taken out. */
    public static Storage of(List<Storage> all, String path) {
        for (Storage storage : all) {
            if (storage.directory.getPath().equals(path)) {
                return storage;
            }
        }
        return all.get(0);
    }

    @Override
    public String toString() {
        return name;
    }
}
