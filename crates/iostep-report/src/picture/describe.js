// What a mark or a sync call is, in words. Names come from the trace, so they only ever become
// text nodes.

import { formatBytes, formatCount, formatDuration, formatTick } from "./format.js";
import { GROUPS } from "./marks.js";

const MOST_RUNS = 6;

/** @type {(model: Model, target: Target) => Description} */
function describe(model, target) {
    return target.mark === null
        ? describeSync(model, target.sync)
        : describeMark(model, target.mark);
}

/** @type {(model: Model, mark: number) => Description} */
function describeMark(model, mark) {
    const { data, marks } = model;
    const r = marks.request[mark];
    const s = marks.segment[mark];
    const operation = data.operations[data.request.operation[r]];
    /** @type {Description["rows"]} */
    const rows = [["request", requestText(model, r)]];
    if (data.request.segments[r] > 1) rows.push(["parts", partsText(model, r)]);
    if (s >= 0) rows.push(...segmentRows(model, s));
    const submitter = processName(model, data.request.submitter_or_0[r]);
    if (submitter) rows.push(["submitted by", submitter]);
    const cause = model.causeOf(mark);
    if (cause !== null) rows.push(["because of", syncText(model, cause)]);
    if (s >= 0) rows.push(["evidence", data.evidence[data.segment.evidence[s]]]);
    rows.push(["time", timeText(model, r)]);
    const notes = requestNotes(model, r);
    if (notes) rows.push(["note", notes]);
    const place = marks.bytes[mark] > 0 ? ` at LBA ${formatCount(marks.sector[mark])}` : "";
    const size = marks.bytes[mark] > 0 ? ` ${formatBytes(marks.bytes[mark])}` : "";
    return { title: `${operation}${size}${place}`, group: marks.group[mark], rows };
}

/** @type {(model: Model, r: number) => string} */
function requestText(model, r) {
    const { request, flags } = model.data;
    const names = flags.filter(([bit]) => request.flags[r] & bit).map(([, name]) => name);
    const parts = request.segments[r];
    const text = [`#${formatCount(r + 1)}`];
    if (parts > 1) text.push(`1 of ${parts} parts of ${formatBytes(request.bytes[r])}`);
    if (names.length) text.push(names.join(" "));
    return text.join(" · ");
}

// What a request is made of, with neighbours of one class together.
/** @type {(model: Model, r: number) => string} */
function partsText(model, r) {
    const { marks, data, firstMark } = model;
    const runs = /** @type {{ name: string, bytes: number }[]} */ ([]);
    for (let mark = firstMark[r]; mark < firstMark[r + 1]; mark++) {
        const { name } = data.classes[data.segment.class[marks.segment[mark]]];
        const last = runs[runs.length - 1];
        if (last?.name === name) last.bytes += marks.bytes[mark];
        else runs.push({ name, bytes: marks.bytes[mark] });
    }
    const shown = runs
        .slice(0, MOST_RUNS)
        .map(({ name, bytes }) => `${name} ${formatBytes(bytes)}`);
    if (runs.length > MOST_RUNS) shown.push(`${runs.length - MOST_RUNS} more`);
    return shown.join(", ");
}

/** @type {(model: Model, s: number) => Description["rows"]} */
function segmentRows(model, s) {
    const { segment, classes } = model.data;
    const { name, layer } = classes[segment.class[s]];
    /** @type {Description["rows"]} */
    const rows = [["class", layer === "unknown" ? name : `${name} (${layer})`]];
    const file = segment.file_or_0[s];
    const offset = segment.file_offset_bytes_or_0[s];
    if (file !== 0) rows.push(["file", fileText(model, file - 1, offset)]);
    const home = segment.home_or_0[s];
    if (home !== 0) {
        const homeClass = segment.home_class_or_0[s];
        const kind = homeClass === 0 ? "" : ` (${classes[homeClass - 1].name})`;
        rows.push(["copy of", `filesystem block ${formatCount(home - 1)}${kind}`]);
    }
    const commit = segment.commit_or_0[s];
    if (commit !== 0) rows.push(["commit", formatCount(commit - 1)]);
    const dirtier = processName(model, segment.dirtier_or_0[s]);
    const guess = segment.dirtier_by_inode[s] ? " (the file's last writer)" : "";
    if (dirtier) rows.push(["dirtied by", dirtier + guess]);
    return rows;
}

/** @type {(model: Model, file: number, offset_or_0: number) => string} */
function fileText(model, file, offset_or_0) {
    const { file_type, deleted } = model.data.files[file];
    const offset = offset_or_0 === 0 ? "" : ` at byte ${formatCount(offset_or_0 - 1)}`;
    return `${model.fileName(file)}${offset} · ${file_type}${deleted ? ", deleted" : ""}`;
}

/** @type {(model: Model, or0: number) => string | null} */
function processName(model, or0) {
    return or0 === 0 ? null : model.data.processes[or0 - 1];
}

/** @type {(model: Model, sync: number) => string} */
function syncText(model, sync) {
    const { kind, file_or_0, process_or_0 } = model.data.sync;
    const text = [model.data.sync_kinds[kind[sync]]];
    if (file_or_0[sync] !== 0) text.push(`of ${model.fileName(file_or_0[sync] - 1)}`);
    const process = processName(model, process_or_0[sync]);
    if (process) text.push(`by ${process}`);
    return text.join(" ");
}

/** @type {(model: Model, r: number) => string} */
function timeText(model, r) {
    const { issue_ns, wait_ns, service_ns_or_0 } = model.data.request;
    const text = [formatTick(issue_ns[r], 1e3)];
    if (wait_ns[r] > 0) text.push(`${formatDuration(wait_ns[r])} in the queue`);
    const service = service_ns_or_0[r];
    text.push(service === 0 ? "not complete" : `${formatDuration(service - 1)} in the device`);
    return text.join(" · ");
}

/** @type {(model: Model, r: number) => string} */
function requestNotes(model, r) {
    const { status, phase, by_tracer } = model.data.request;
    const notes = [];
    if (status[r] !== 0) notes.push(`failed, status ${status[r]}`);
    if (phase[r] !== 0) notes.push(`phase: ${model.data.phases[phase[r]]}`);
    if (by_tracer[r]) notes.push("by the tracer itself");
    return notes.join(", ");
}

/** @type {(model: Model, sync: number) => Description} */
function describeSync(model, sync) {
    const { enter_ns, duration_ns_or_0 } = model.data.sync;
    const duration = duration_ns_or_0[sync];
    const { ios, bytes, journalBytes } = model.syncTotals;
    return {
        title: model.syncNames(sync)[0],
        group: null,
        rows: [
            ["call", syncText(model, sync)],
            ["entered", formatTick(enter_ns[sync], 1e3)],
            ["took", duration === 0 ? "not returned" : formatDuration(duration - 1)],
            ["made necessary", `${formatCount(ios[sync])} parts of I/O, ${formatBytes(bytes[sync])}`],
            ["of it", `${formatBytes(journalBytes[sync])} of filesystem journal`],
        ],
    };
}

/** @type {(element: Element, description: Description, extra?: string) => void} */
function renderDescription(element, { title, group, rows }, extra = "") {
    const heading = document.createElement("h3");
    if (group !== null) heading.append(groupIcon(group), " ");
    heading.append(title);
    const list = document.createElement("dl");
    for (const [name, value] of rows) {
        const term = document.createElement("dt");
        const detail = document.createElement("dd");
        term.textContent = name;
        detail.textContent = value;
        list.append(term, detail);
    }
    element.replaceChildren(heading, list);
    if (extra) {
        const note = document.createElement("p");
        note.textContent = extra;
        element.append(note);
    }
}

// The group's symbol as the canvas draws it, for the legend and the descriptions.
/** @type {(group: number, hollow?: boolean) => SVGElement} */
function groupIcon(group, hollow = false) {
    const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    icon.setAttribute("viewBox", "-7 -7 14 14");
    icon.setAttribute("class", `icon${hollow ? " hollow" : ""}`);
    icon.setAttribute("aria-hidden", "true");
    icon.style.color = `var(--${GROUPS[group].id})`;
    path.setAttribute("d", ICON_PATHS[GROUPS[group].shape]);
    icon.append(path);
    return icon;
}

/** @type {Record<ShapeName, string>} */
const ICON_PATHS = {
    circle: "M5 0A5 5 0 1 1-5 0A5 5 0 1 1 5 0Z",
    square: "M-4.5-4.5h9v9h-9Z",
    diamond: "M0-6L6 0L0 6L-6 0Z",
    triangle: "M0-6L5.5 4L-5.5 4Z",
    plus: "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4Z",
    cross: "M-5.5-3.5l2-2l3.5 3.5l3.5-3.5l2 2l-3.5 3.5l3.5 3.5l-2 2l-3.5-3.5l-3.5 3.5l-2-2l3.5-3.5Z",
};

export { describe, groupIcon, renderDescription };
