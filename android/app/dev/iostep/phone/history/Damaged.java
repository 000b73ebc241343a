package dev.iostep.phone.history;

import android.content.Context;
import android.content.SharedPreferences;
import android.database.DatabaseErrorHandler;
import android.database.sqlite.SQLiteDatabase;
import android.database.sqlite.SQLiteDatabaseCorruptException;

import java.io.File;

/**
 * Puts a history aside that SQLite finds damaged, where Android's own handler would delete it without
 * a word. What can be read of it, a person with tools can still read.
 */
public final class Damaged implements DatabaseErrorHandler {
    private static final String TOLD = "name";
    /** A database and its logs: it lacks what was last without them, and a new one must not find them. */
    private static final String[] PARTS = {"-journal", "-wal", ""};

    private final Context context;

    Damaged(Context context) {
        this.context = context;
    }

    private static SharedPreferences kept(Context context) {
        return context.getSharedPreferences("damaged", Context.MODE_PRIVATE);
    }

    @Override
    public void onCorruption(SQLiteDatabase database) {
        if (database.isOpen()) {
            database.close();
        }
        putAside(new File(database.getPath()));
    }

    /** Whether a damage is what an error comes from. */
    static boolean isCause(Throwable error) {
        return error != null && (error instanceof SQLiteDatabaseCorruptException
                || isCause(error.getCause()));
    }

    /** What is not there, as it was put aside already, stays away. */
    void putAside(File file) {
        File aside = free(file);
        for (String part : PARTS) {
            new File(file.getPath() + part).renameTo(new File(aside.getPath() + part));
        }
        new File(file.getPath() + "-shm").delete();
        if (aside.isFile()) {
            // At once: what found the damage may end the process.
            kept(context).edit().putString(TOLD, aside.getName()).commit();
        }
    }

    /** A name that no damaged one before has. */
    private static File free(File file) {
        for (int number = 1; ; number++) {
            File aside = new File(file.getParentFile(), "damaged-" + number + "-" + file.getName());
            if (!aside.exists()) {
                return aside;
            }
        }
    }

    /** The name of a history that was put aside and not told of yet, or null; told once. */
    public static String take(Context context) {
        String name = kept(context).getString(TOLD, null);
        if (name != null) {
            kept(context).edit().remove(TOLD).apply();
        }
        return name;
    }
}
