package dev.iostep.phone.upload;

import android.content.Context;

import org.bouncycastle.math.ec.rfc8032.Ed25519;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;

import dev.iostep.phone.R;

/**
 * The key by which a server tells this installation from others; it says nothing about a person.
 * Android has Ed25519 from 13 on only, so it is Bouncy Castle's.
 */
final class Key {
    /** What is signed begins so, that a signature is good for nothing else. */
    private static final String PURPOSE = "iostep upload 1\n";

    private final byte[] secret;

    Key(byte[] secret) {
        this.secret = secret;
    }

    /** The installation's, made at the first time, where no backup takes it. */
    static synchronized Key of(Context context) throws IOException {
        File file = new File(context.getNoBackupFilesDir(), "key");
        if (file.isFile()) {
            byte[] secret = Files.readAllBytes(file.toPath());
            if (secret.length == Ed25519.SECRET_KEY_SIZE) {
                return new Key(secret);
            }
        }
        byte[] secret = new byte[Ed25519.SECRET_KEY_SIZE];
        new SecureRandom().nextBytes(secret);
        File fresh = new File(file.getPath() + ".new");
        try (FileOutputStream out = new FileOutputStream(fresh)) {
            out.write(secret);
            out.getFD().sync();
        }
        if (!fresh.renameTo(file)) {
            throw new IOException(context.getString(R.string.no_key, file.getPath()));
        }
        return new Key(secret);
    }

    String shown() {
        byte[] open = new byte[Ed25519.PUBLIC_KEY_SIZE];
        Ed25519.generatePublicKey(secret, 0, open, 0);
        return Hex.encode(open);
    }

    /** Signs a body for one nonce of a server. */
    String sign(byte[] nonce, byte[] body) {
        byte[] purpose = PURPOSE.getBytes(java.nio.charset.StandardCharsets.US_ASCII);
        byte[] hash = sha256(body);
        byte[] message = new byte[purpose.length + nonce.length + hash.length];
        System.arraycopy(purpose, 0, message, 0, purpose.length);
        System.arraycopy(nonce, 0, message, purpose.length, nonce.length);
        System.arraycopy(hash, 0, message, purpose.length + nonce.length, hash.length);
        byte[] signature = new byte[Ed25519.SIGNATURE_SIZE];
        Ed25519.sign(secret, 0, message, 0, message.length, signature, 0);
        return Hex.encode(signature);
    }

    private static byte[] sha256(byte[] bytes) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(bytes);
        } catch (NoSuchAlgorithmException never) {
            // Every Android has it.
            throw new AssertionError(never);
        }
    }
}
