package androidx.test.platform.ui;

/** An event was refused. */
public class InjectEventSecurityException extends Exception {
    public InjectEventSecurityException(Throwable cause) {
        super(cause);
    }
}
