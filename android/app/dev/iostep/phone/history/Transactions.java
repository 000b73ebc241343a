package dev.iostep.phone.history;

import android.database.SQLException;
import android.database.sqlite.SQLiteDatabase;

/** Ends transactions so that the reason of a failure stays known. */
public final class Transactions {
    private Transactions() {}

    /**
     * Ends one; {@code first} is what went wrong in it, or null. What finds no room SQLite itself has
     * undone, and that there is nothing to end any more would hide why.
     */
    public static void end(SQLiteDatabase database, SQLException first) {
        try {
            database.endTransaction();
        } catch (SQLException gone) {
            throw first == null ? gone : first;
        }
    }
}
