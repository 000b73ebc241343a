package dev.iostep.phone.measure;

/** The person's wish to end a run. What was measured until then is kept. */
public final class Stop {
    private boolean asked;
    private Process process;

    /** Ends what is under way, and whatever begins later. */
    public synchronized void ask() {
        asked = true;
        if (process != null) {
            process.destroy();
        }
    }

    public synchronized boolean isAsked() {
        return asked;
    }

    /** This process is ended with it: at once, if it was asked for already. */
    synchronized void ends(Process process) {
        this.process = process;
        if (asked && process != null) {
            process.destroy();
        }
    }
}
