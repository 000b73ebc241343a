package androidx.test.internal.platform.content;

/** Grants permissions. */
public interface PermissionGranter {
    void addPermissions(String... permissions);

    void requestPermissions();
}
