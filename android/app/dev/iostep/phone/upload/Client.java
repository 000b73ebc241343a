package dev.iostep.phone.upload;

import android.content.Context;

import org.json.JSONException;
import org.json.JSONObject;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.zip.GZIPOutputStream;

import dev.iostep.phone.R;
import dev.iostep.phone.settings.Address;

/** Speaks with a server of results: docs/serve.md. */
public final class Client {
    private static final int PATIENCE_MS = 60_000;
    /** The longest answer that is read. */
    private static final int MOST_BYTES = 1 << 20;

    private final Context context;
    private final String base;

    public Client(Context context, String server) {
        this.context = context;
        base = Address.base(server);
    }

    /** The server's word that it does not take what was brought. */
    static final class Refused extends Exception {
        final int status;

        Refused(int status, String message) {
            super(message);
            this.status = status;
        }

        /** True if the same may be taken later: too many at once, no room, a nonce that ran out. */
        boolean isForNow() {
            return status == 401 || status == 408 || status == 429 || status >= 500;
        }
    }

    /** Brings a result; what the server says of it. */
    JSONObject submit(Key key, String result) throws IOException, Refused {
        byte[] nonce = Hex.decode(ask("GET", "/api/v1/nonce", null, new String[0])
                .optString("nonce"));
        if (nonce == null || nonce.length == 0) {
            throw noServer();
        }
        byte[] body = packed(result);
        JSONObject answer = ask("POST", "/api/v1/results", body, new String[] {
            "content-type", "application/json",
            "content-encoding", "gzip",
            "iostep-key", key.shown(),
            "iostep-nonce", Hex.encode(nonce),
            "iostep-signature", key.sign(nonce, body),
        });
        // Both are sent back one day, in a path and in a header.
        String token = token(answer);
        if (!isName(answer.optString("id")) || !token.isEmpty() && !isName(token)) {
            throw noServer();
        }
        return answer;
    }

    /** What takes a result back; empty if it is another installation's. */
    static String token(JSONObject answer) {
        return answer.isNull("delete_token") ? "" : answer.optString("delete_token");
    }

    private static boolean isName(String text) {
        return !text.isEmpty() && Hex.decode(text) != null;
    }

    /** Takes a result back. */
    void remove(String id, String token) throws IOException, Refused {
        ask("DELETE", "/api/v1/results/" + id, null, new String[] {"iostep-delete-token", token});
    }

    /** The places of a model's devices among those of a test. */
    JSONObject ranking(String test, String model) throws IOException, Refused {
        String asked = "?test=" + URLEncoder.encode(test, "UTF-8")
                + "&model=" + URLEncoder.encode(model, "UTF-8");
        return ask("GET", "/api/v1/ranking" + asked, null, new String[0]);
    }

    private static byte[] packed(String text) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (GZIPOutputStream out = new GZIPOutputStream(bytes)) {
            out.write(text.getBytes(StandardCharsets.UTF_8));
        }
        return bytes.toByteArray();
    }

    private JSONObject ask(String method, String path, byte[] body, String[] headers)
            throws IOException, Refused {
        HttpURLConnection connection =
                (HttpURLConnection) new URL(base + path).openConnection();
        try {
            connection.setRequestMethod(method);
            connection.setConnectTimeout(PATIENCE_MS);
            connection.setReadTimeout(PATIENCE_MS);
            // A signature is for one address.
            connection.setInstanceFollowRedirects(false);
            for (int at = 0; at < headers.length; at += 2) {
                connection.setRequestProperty(headers[at], headers[at + 1]);
            }
            if (body != null) {
                connection.setDoOutput(true);
                connection.setFixedLengthStreamingMode(body.length);
                try (OutputStream out = connection.getOutputStream()) {
                    out.write(body);
                }
            }
            int status = connection.getResponseCode();
            if (status / 100 != 2) {
                throw refused(status, connection.getErrorStream());
            }
            return json(connection.getInputStream());
        } finally {
            connection.disconnect();
        }
    }

    /** What a server of results refuses it says in its own form. Whatever else answers, as the page
     * of a network that wants a person to sign in, refuses nothing. */
    private Refused refused(int status, InputStream stream) throws IOException {
        JSONObject error = null;
        try {
            error = json(stream).optJSONObject("error");
        } catch (IOException page) {
            // The status says enough.
        }
        if (error == null || error.optString("code").isEmpty()) {
            throw new IOException(context.getString(R.string.no_server_status, base, status));
        }
        return new Refused(status, error.optString("message"));
    }

    private IOException noServer() {
        return new IOException(context.getString(R.string.no_server, base));
    }

    private JSONObject json(InputStream stream) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        byte[] part = new byte[1 << 14];
        if (stream != null) {
            try (InputStream in = stream) {
                for (int count = in.read(part); count >= 0; count = in.read(part)) {
                    all.write(part, 0, count);
                    if (all.size() > MOST_BYTES) {
                        throw noServer();
                    }
                }
            }
        }
        try {
            return new JSONObject(new String(all.toByteArray(), StandardCharsets.UTF_8));
        } catch (JSONException error) {
            throw noServer();
        }
    }
}
