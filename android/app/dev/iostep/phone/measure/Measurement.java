package dev.iostep.phone.measure;

import android.content.Context;
import android.os.Build;

import org.json.JSONException;

import java.io.File;
import java.io.IOException;
import java.util.List;

import dev.iostep.phone.R;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;
import dev.iostep.phone.upload.UploadJob;

/** Runs the steps of a plan, one after the other, and keeps what they measured. */
final class Measurement implements Runnable {
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
                    trouble = context.getString(R.string.stopped);
                } else {
                    Measuring.get().beginStep(number);
                    trouble = step(steps.get(number));
                }
            }
        } catch (RuntimeException | JSONException error) {
            trouble = context.getString(R.string.failed_app, error.toString());
        } finally {
            Measuring.get().end(trouble);
            UploadJob.schedule(context);
        }
    }

    /** The answer is why nothing can follow, or null. */
    private String step(Step step) throws JSONException {
        Conditions before = Conditions.now(context);
        long run = history.begin(step.workload.key(), step.by.name(), storage.name,
                Build.MODEL);
        reached = 0;
        Engine.Outcome outcome;
        try {
            outcome = measure(step);
        } catch (IOException error) {
            outcome = new Engine.Outcome("", error.getMessage(), false);
        }
        boolean measured = outcome.text.startsWith("{");
        String state = !measured ? Run.FAILED : outcome.whole ? Run.COMPLETE : Run.PARTIAL;
        String complaint = complaint(outcome);
        history.end(run, state, measured ? outcome.text : null,
                Conditions.around(before, Conditions.now(context)).toString(), complaint,
                outcome.whole ? step.bytes : (long) (step.bytes * reached));
        if (state.equals(Run.COMPLETE)) {
            UploadJob.add(context, run);
        }
        Measuring.get().endStep(run);
        if (stop.isAsked()) {
            return context.getString(R.string.stopped);
        }
        return outcome.whole ? null : complaint;
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
                : new PhoneSqlite(engine).bench(step.arguments, directory, listener, stop);
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
            return context.getString(R.string.stopped);
        }
        return outcome.complaint.isEmpty()
                ? context.getString(R.string.failed_silently) : outcome.complaint;
    }
}
