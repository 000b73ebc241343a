package dev.iostep.phone.history;

/** What became of sending a run to a server. */
public final class Upload {
    public static final String WAITING = "waiting";
    public static final String SENT = "sent";
    public static final String REFUSED = "refused";
    public static final String TAKEN_BACK = "taken_back";

    public final long run;
    public final String server;
    public final String state;
    /** The result's name at the server, and what takes it back; null before it was sent. */
    public final String id;
    public final String token;
    /** The server's name of the test; null before it was sent. */
    public final String test;
    /** What the server said: its state of the result and why, or why it was refused or still waits;
     * or null. */
    public final String answer;

    Upload(long run, String server, String state, String id, String token, String test,
            String answer) {
        this.run = run;
        this.server = server;
        this.state = state;
        this.id = id;
        this.token = token;
        this.test = test;
        this.answer = answer;
    }
}
