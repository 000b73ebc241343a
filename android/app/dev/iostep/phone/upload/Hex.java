package dev.iostep.phone.upload;

/** Bytes as hexadecimal digits. */
final class Hex {
    private static final String DIGITS = "0123456789abcdef";

    private Hex() {}

    static String encode(byte[] bytes) {
        StringBuilder text = new StringBuilder(2 * bytes.length);
        for (byte each : bytes) {
            text.append(DIGITS.charAt(each >> 4 & 15)).append(DIGITS.charAt(each & 15));
        }
        return text.toString();
    }

    /** The bytes, or null for what is none. */
    static byte[] decode(String text) {
        if (text.length() % 2 != 0) {
            return null;
        }
        byte[] bytes = new byte[text.length() / 2];
        for (int at = 0; at < bytes.length; at++) {
            int high = DIGITS.indexOf(text.charAt(2 * at));
            int low = DIGITS.indexOf(text.charAt(2 * at + 1));
            if (high < 0 || low < 0) {
                return null;
            }
            bytes[at] = (byte) (high << 4 | low);
        }
        return bytes;
    }
}
