package dev.iostep.phone.measure;

import android.content.Context;
import android.database.SQLException;
import android.os.Build;

import org.json.JSONException;

import java.io.File;
import java.io.IOException;
import java.util.Collections;
import java.util.List;

import dev.iostep.phone.R;
import dev.iostep.phone.history.Figures;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.settings.Parameter;
import dev.iostep.phone.settings.Settings;
import dev.iostep.phone.upload.UploadJob;

/** Runs the steps of a plan, one after the other, and keeps what they measured. */
final class Measurement implements Runnable {
    /** Of a text that is no result, how much is shown. */
    private static final int SHOWN_LETTERS = 80;

    private final Context context;
    private final List<Step> steps;
    private final Storage storage;
    private final Stop stop;
    private final History history;
    private final Engine engine;
    /** How much the step under way wrote of what it writes, 0 to 1. */
    private volatile double reached;

    Measurement(Context context, List<Step> steps, Storage storage, Stop stop) {
        this.context = context;
        this.steps = steps;
        this.storage = storage;
        this.stop = stop;
        history = History.of(context);
        engine = new Engine(context);
    }

    @Override
    public void run() {
        String trouble = null;
        try {
            for (int number = 0; number < steps.size() && trouble == null; number++) {
                if (stop.isAsked()) {
                    trouble = stopped();
                } else {
                    Measuring.get().beginStep(number);
                    trouble = step(steps.get(number));
                }
            }
        } catch (SQLException full) {
            trouble = context.getString(R.string.history_full, full.getMessage());
        } catch (RuntimeException | JSONException | Error error) {
            trouble = context.getString(R.string.failed_app, error.toString());
        } finally {
            Measuring.get().end(trouble);
            UploadJob.schedule(context);
        }
    }

    /** The answer is why nothing can follow, or null. */
    private String step(Step step) throws JSONException {
        Conditions before = Conditions.now(context);
        // The tests before took of the battery, of the room and of what may be written.
        String refusal = Refusal.of(context, before, storage.directory,
                Collections.singletonList(step), history.written(),
                new Settings(context).bytes(Parameter.CAP));
        if (refusal != null) {
            return refusal;
        }
        long run = history.begin(step.workload.key(), step.by.name(), storage, Build.MODEL,
                step.bytes);
        reached = 0;
        Engine.Outcome outcome = read(outcome(step));
        boolean measured = !outcome.text.isEmpty();
        String state = !measured ? Run.FAILED : outcome.whole ? Run.COMPLETE : Run.PARTIAL;
        String complaint = complaint(outcome);
        long operations = measured ? Figures.of(outcome.text).operations() : 0;
        history.end(run, state, measured ? outcome.text : null,
                Conditions.around(before, Conditions.now(context)).toString(), complaint,
                step.written(outcome.whole ? 1 : reached, operations));
        if (state.equals(Run.COMPLETE)) {
            UploadJob.add(context, run);
        }
        Measuring.get().endStep(run);
        if (stop.isAsked()) {
            return stopped();
        }
        return outcome.whole ? null : complaint;
    }

    /** Whatever goes wrong in it is the end of a run that is in the history. */
    private Engine.Outcome outcome(Step step) {
        try {
            return measure(step);
        } catch (IOException error) {
            return new Engine.Outcome("", error.getMessage(), false);
        } catch (OutOfMemoryError error) {
            return new Engine.Outcome("", context.getString(R.string.failed_memory), false);
        } catch (RuntimeException | Error error) {
            return new Engine.Outcome("", context.getString(R.string.failed_app, error.toString()),
                    false);
        }
    }

    /** A part of a result, as an engine prints that is killed or finds no room for it, is none. */
    private Engine.Outcome read(Engine.Outcome outcome) {
        String text = outcome.text;
        if (Figures.isResult(text)) {
            return outcome;
        }
        boolean unread = outcome.whole && !text.isEmpty() && outcome.complaint.isEmpty();
        String why = unread ? context.getString(R.string.failed_unread,
                text.substring(0, Math.min(SHOWN_LETTERS, text.length()))) : outcome.complaint;
        return new Engine.Outcome("", why, false);
    }

    private Engine.Outcome measure(Step step) throws IOException {
        File directory = storage.directory;
        if (!directory.isDirectory() && !directory.mkdirs()) {
            throw new IOException(context.getString(R.string.refuse_storage, directory.getPath()));
        }
        Progress.Listener listener = progress -> {
            reached = progress.written(step.workload.preparing());
            Measuring.get().progress(progress);
        };
        return step.by == Step.By.ENGINE
                ? engine.bench(step.arguments, directory, listener, stop)
                : new PhoneSqlite(context, engine).bench(step.arguments, directory, listener, stop);
    }

    private String stopped() {
        return stop.why() == null ? context.getString(R.string.stopped) : stop.why();
    }

    /** In words; a card that was taken out has made the engine complain of something else. */
    private String complaint(Engine.Outcome outcome) {
        if (outcome.whole) {
            return null;
        }
        if (!storage.directory.isDirectory()) {
            return context.getString(R.string.refuse_storage, storage.directory.getPath());
        }
        if (stop.isAsked()) {
            return stopped();
        }
        return outcome.complaint.isEmpty()
                ? context.getString(R.string.failed_silently) : outcome.complaint;
    }
}
