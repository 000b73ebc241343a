package dev.iostep.phone.history;

import android.content.ContentProvider;
import android.content.ContentValues;
import android.content.Context;
import android.database.Cursor;
import android.database.MatrixCursor;
import android.net.Uri;
import android.os.ParcelFileDescriptor;
import android.provider.OpenableColumns;

import java.io.File;
import java.io.FileNotFoundException;

/** Shows an app that was chosen in the system's sheet the one file that is shared with it. */
public final class SharedFile extends ContentProvider {
    private static final String AUTHORITY = "dev.iostep.phone.shared";

    static File directory(Context context) {
        File directory = new File(context.getCacheDir(), "shared");
        directory.mkdirs();
        return directory;
    }

    static Uri uri(File file) {
        return new Uri.Builder().scheme("content").authority(AUTHORITY)
                .appendPath(file.getName()).build();
    }

    /** A name and nothing else: no way leads out of the directory. */
    private File file(Uri uri) throws FileNotFoundException {
        String name = uri.getLastPathSegment();
        boolean plain = uri.getPathSegments().size() == 1 && name != null
                && name.indexOf('/') < 0 && !name.startsWith(".");
        File file = plain ? new File(directory(getContext()), name) : null;
        if (file == null || !file.isFile()) {
            throw new FileNotFoundException(uri + ": nothing of this name is shared");
        }
        return file;
    }

    @Override
    public boolean onCreate() {
        return true;
    }

    @Override
    public ParcelFileDescriptor openFile(Uri uri, String mode) throws FileNotFoundException {
        if (!mode.equals("r")) {
            throw new FileNotFoundException(uri + ": it can be read only");
        }
        return ParcelFileDescriptor.open(file(uri), ParcelFileDescriptor.MODE_READ_ONLY);
    }

    @Override
    public Cursor query(Uri uri, String[] columns, String where, String[] arguments,
            String order) {
        MatrixCursor rows = new MatrixCursor(
                new String[] {OpenableColumns.DISPLAY_NAME, OpenableColumns.SIZE});
        try {
            File file = file(uri);
            rows.addRow(new Object[] {file.getName(), file.length()});
        } catch (FileNotFoundException none) {
            // No row says so.
        }
        return rows;
    }

    @Override
    public String getType(Uri uri) {
        String name = uri.getLastPathSegment();
        return name != null && name.endsWith(".csv") ? "text/csv" : "application/json";
    }

    @Override
    public Uri insert(Uri uri, ContentValues values) {
        throw new UnsupportedOperationException("shared files can be read only");
    }

    @Override
    public int delete(Uri uri, String where, String[] arguments) {
        throw new UnsupportedOperationException("shared files can be read only");
    }

    @Override
    public int update(Uri uri, ContentValues values, String where, String[] arguments) {
        throw new UnsupportedOperationException("shared files can be read only");
    }
}
