package dev.iostep.phone.measure;

import android.content.Context;
import android.os.Environment;

import java.io.File;
import java.util.ArrayList;
import java.util.List;

import dev.iostep.phone.R;

/** A place where the app may write without a permission: inside, and on each external volume. */
public final class Storage {
    /** Where the tests' files go. */
    public final File directory;
    /** What people call it. */
    public final String name;

    private Storage(File directory, String name) {
        this.directory = directory;
        this.name = name;
    }

    public static List<Storage> all(Context context) {
        List<Storage> all = new ArrayList<>();
        all.add(new Storage(new File(context.getFilesDir(), "bench"),
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
            all.add(new Storage(new File(directory, "bench"), name));
        }
        return all;
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
