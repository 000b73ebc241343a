package dev.iostep.phone.measure;

/** The wish to end a run: the person's, or Android's. What was measured until then is kept. */
public class Stop {
    private boolean asked;
    private String why;
    private Process process;

    /** The person ends what is under way, and whatever begins later. */
    public void ask() {
        ask(null);
    }

    /** The same for a reason; null is the person's wish. The first one counts. */
    synchronized void ask(String why) {
        if (!asked) {
            asked = true;
            this.why = why;
        }
        if (process != null) {
            process.destroy();
        }
    }

    public synchronized boolean isAsked() {
        return asked;
    }

    /** Why it was asked for; null if the person wished it. */
    synchronized String why() {
        return why;
    }

    /** This process is ended with it: at once, if it was asked for already. */
    synchronized void ends(Process process) {
        this.process = process;
        if (asked && process != null) {
            process.destroy();
        }
    }
}
