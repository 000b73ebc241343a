package dev.iostep.phone.ui;

import android.content.Context;

import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

import java.util.List;

import dev.iostep.phone.R;
import dev.iostep.phone.history.Figures;
import dev.iostep.phone.history.History;
import dev.iostep.phone.history.Run;

/** What stands below the figure of a result. */
final class ResultSections {
    private final Context context;
    private final History history;
    private final Run run;
    private final Figures figures;

    ResultSections(Context context, History history, Run run, Figures figures) {
        this.context = context;
        this.history = history;
        this.run = run;
        this.figures = figures;
    }

    void fill(Sections sections) {
        warnings(sections);
        latencies(sections);
        cost(sections);
        place(sections);
        conditions(sections);
        environment(sections);
    }

    /** Those of the engine, and those that the app found. */
    private void warnings(Sections sections) {
        JSONArray own = figures.warnings();
        JSONArray found = conditionsOf().optJSONArray("warnings");
        if (own.length() == 0 && (found == null || found.length() == 0)) {
            return;
        }
        sections.title(R.string.warnings);
        for (JSONArray list : new JSONArray[] {found, own}) {
            for (int at = 0; list != null && at < list.length(); at++) {
                sections.warning(Words.warning(context, list.optJSONObject(at)));
            }
        }
    }

    private JSONObject conditionsOf() {
        String text = history.conditions(run.id);
        try {
            return text == null ? new JSONObject() : new JSONObject(text);
        } catch (JSONException none) {
            return new JSONObject();
        }
    }

    private void latencies(Sections sections) {
        JSONArray latencies = figures.latencies();
        if (latencies.length() == 0) {
            return;
        }
        sections.title(R.string.latency);
        Table table = new Table(context);
        // In the order of Figures.PERCENTILES.
        table.row(context.getString(R.string.step), "p50", "p90", "p99", "p99.9",
                context.getString(R.string.most));
        for (int at = 0; at < latencies.length(); at++) {
            JSONObject each = latencies.optJSONObject(at);
            String[] cells = new String[1 + Figures.PERCENTILES.length];
            cells[0] = Words.step(context, each.optString("step"));
            for (int column = 1; column < cells.length; column++) {
                String name = Figures.PERCENTILES[column - 1];
                cells[column] = each.isNull(name)
                        ? Table.UNKNOWN : Words.duration(context, each.optDouble(name));
            }
            table.row(cells);
        }
        sections.view(table.view());
    }

    private void cost(Sections sections) {
        JSONObject cpu = figures.cpu();
        if (cpu == null) {
            return;
        }
        sections.title(R.string.cost);
        sections.line(context.getString(R.string.own_cpu,
                Words.percent(context, cpu.optDouble("user_cpus", 0)),
                Words.percent(context, cpu.optDouble("system_cpus", 0))));
        sections.line(context.getString(R.string.switches,
                Words.number(context, cpu.optDouble("voluntary_switches", 0)),
                Words.number(context, cpu.optDouble("involuntary_switches", 0))));
        JSONObject machine = figures.machine();
        if (machine == null) {
            sections.quiet(context.getString(R.string.machine_hidden));
        } else {
            sections.line(context.getString(R.string.machine,
                    Words.percent(context, machine.optDouble("active", 0)),
                    Words.percent(context, machine.optDouble("idle", 0)),
                    Words.percent(context, machine.optDouble("iowait", 0))));
        }
    }

    /** Among this phone's own runs of the test. */
    private void place(Sections sections) {
        List<Double> rates = history.rates(run);
        if (rates.isEmpty()) {
            return;
        }
        boolean transactions = figures.isTransactions();
        sections.title(R.string.place);
        Table table = new Table(context);
        table.row("", context.getString(R.string.best), context.getString(R.string.median),
                context.getString(R.string.worst));
        table.row(context.getResources().getQuantityString(R.plurals.of_this_phone, rates.size(),
                        rates.size()),
                Words.rate(context, transactions, rates.get(rates.size() - 1)),
                Words.rate(context, transactions, median(rates)),
                Words.rate(context, transactions, rates.get(0)));
        sections.view(table.view());
    }

    private static double median(List<Double> sorted) {
        int middle = sorted.size() / 2;
        return sorted.size() % 2 == 1
                ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }

    private void conditions(Sections sections) {
        JSONObject both = conditionsOf();
        if (both.optJSONObject("before") == null) {
            return;
        }
        sections.title(R.string.conditions);
        Table table = new Table(context);
        table.row("", context.getString(R.string.before), context.getString(R.string.after));
        JSONObject before = both.optJSONObject("before");
        JSONObject after = both.optJSONObject("after");
        table.row(context.getString(R.string.battery), battery(before), battery(after));
        table.row(context.getString(R.string.saver), yes(before, "battery_saver"),
                yes(after, "battery_saver"));
        table.row(context.getString(R.string.thermal), thermal(before), thermal(after));
        sections.view(table.view());
    }

    private String battery(JSONObject at) {
        String level = at.isNull("battery_percent")
                ? Table.UNKNOWN : Words.percent(context, at.optInt("battery_percent") / 100.0);
        return at.optBoolean("charging")
                ? context.getString(R.string.charging, level) : level;
    }

    private String yes(JSONObject at, String name) {
        return context.getString(at.optBoolean(name) ? R.string.yes : R.string.no);
    }

    private String thermal(JSONObject at) {
        if (at.isNull("thermal_status")) {
            return Table.UNKNOWN;
        }
        String status = context.getString(R.string.thermal_of, at.optInt("thermal_status"));
        return at.isNull("thermal_headroom") ? status
                : status + ", " + Words.percent(context, at.optDouble("thermal_headroom"));
    }

    private void environment(Sections sections) {
        sections.title(R.string.where);
        sections.quiet(context.getString(R.string.where_kernel,
                figures.environment(null, "kernel"), figures.environment("filesystem", "kind")));
        String sqlite = figures.environment("sqlite", "version");
        if (!sqlite.isEmpty()) {
            sections.quiet(context.getString(R.string.where_sqlite, sqlite));
        }
    }
}
