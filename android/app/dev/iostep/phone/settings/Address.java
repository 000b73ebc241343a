package dev.iostep.phone.settings;

import java.net.URI;
import java.net.URISyntaxException;

/** The address of a server of results. */
public final class Address {
    private Address() {}

    /** True for {@code http://HOST[:PORT][/PATH]}, and the same of https. */
    public static boolean isServer(String text) {
        try {
            URI uri = new URI(text);
            boolean web = "http".equals(uri.getScheme()) || "https".equals(uri.getScheme());
            return web && uri.getHost() != null && uri.getQuery() == null
                    && uri.getFragment() == null && uri.getUserInfo() == null;
        } catch (URISyntaxException none) {
            return false;
        }
    }

    /** Without a slash at its end, so that a path can follow. */
    public static String base(String text) {
        return text.endsWith("/") ? text.substring(0, text.length() - 1) : text;
    }

    /** True if whoever is in between can read along. */
    public static boolean isPlain(String text) {
        return text.startsWith("http://");
    }
}
