// A mark is what the picture draws and the pointer finds: one segment of a request, or the
// request itself where it has none (a flush).

// From back to front. Colours are those of Okabe and Ito, told apart by people with any colour
// vision; shapes and lightness tell them apart in grey.
const GROUPS = /** @type {const} */ ([
    { id: "unknown", label: "unknown", shape: "cross" },
    { id: "metadata", label: "filesystem metadata", shape: "plus" },
    { id: "other-file", label: "other files", shape: "triangle" },
    { id: "database", label: "database", shape: "circle" },
    { id: "database-log", label: "database journal, WAL", shape: "diamond" },
    { id: "journal", label: "filesystem journal", shape: "square" },
]);
const [UNKNOWN, METADATA, OTHER_FILE, DATABASE, DATABASE_LOG, JOURNAL] = GROUPS.keys();
const KINDS = ["read", "write", "discard", "flush"];
const [READ, WRITE, DISCARD, FLUSH] = KINDS.keys();

/** @type {(data: Data, segment: number) => number} */
function groupOf(data, segment) {
    const { layer } = data.classes[data.segment.class[segment]];
    if (layer === "journal") return JOURNAL;
    if (layer === "metadata") return METADATA;
    if (layer === "unknown") return UNKNOWN;
    const part = data.files[data.segment.file_or_0[segment] - 1]?.of_database;
    if (part === "log") return DATABASE_LOG;
    return part === "other" ? DATABASE : OTHER_FILE;
}

/** @type {(data: Data, request: number) => number} */
function kindOf(data, request) {
    if (data.request.bytes[request] === 0) return FLUSH;
    const operation = data.operations[data.request.operation[request]];
    if (operation === "read") return READ;
    const discards = ["discard", "secure_erase", "write_zeroes"];
    return discards.includes(operation) ? DISCARD : WRITE;
}

function emptyMarks(/** @type {number} */ count) {
    return {
        count,
        request: new Uint32Array(count),
        segment: new Int32Array(count).fill(-1),
        sector: new Float64Array(count),
        bytes: new Float64Array(count),
        group: new Uint8Array(count),
        kind: new Uint8Array(count),
    };
}

// Marks in the order of issue.
function buildMarks(/** @type {Data} */ data) {
    const { request, segment } = data;
    const requests = request.issue_ns.length;
    let count = 0;
    for (let r = 0; r < requests; r++) count += Math.max(1, request.segments[r]);
    const marks = emptyMarks(count);
    let mark = 0;
    let s = 0;
    for (let r = 0; r < requests; r++) {
        const kind = kindOf(data, r);
        const parts = request.segments[r];
        for (let part = 0; part < Math.max(1, parts); part++, mark++) {
            marks.request[mark] = r;
            marks.kind[mark] = kind;
            marks.sector[mark] = request.sector[r];
            marks.bytes[mark] = request.bytes[r];
            if (parts === 0) continue;
            marks.segment[mark] = s;
            marks.sector[mark] += segment.distance_sectors[s];
            marks.bytes[mark] = segment.bytes[s];
            marks.group[mark] = groupOf(data, s);
            s++;
        }
    }
    return marks;
}

// Requests that order others: flushes, and writes that are durable at the end.
function buildBarriers(/** @type {Data} */ data) {
    const fua = data.flags.find(([, name]) => name === "FUA")?.[0] ?? 0;
    const flushes = /** @type {number[]} */ ([]);
    const durable = /** @type {number[]} */ ([]);
    data.request.flags.forEach((flags, r) => {
        if (data.operations[data.request.operation[r]] === "flush") flushes.push(r);
        if (flags & fua) durable.push(r);
    });
    return { flushes, durable };
}

// Spans that overlap go to different tracks of their lane, as far as there are tracks.
/** @param {Column} start @param {Column} length_or_0 @param {number} end @param {number} tracks */
function buildSpans(start, length_or_0, end, tracks) {
    const count = start.length;
    const spans = {
        count,
        start,
        end: new Float64Array(count),
        latest: new Float64Array(count),
        track: new Uint8Array(count),
        tracks: 1,
    };
    const free = new Array(tracks).fill(-1);
    let latest = 0;
    for (let i = 0; i < count; i++) {
        const length = length_or_0[i];
        spans.end[i] = length === 0 ? end : start[i] + length - 1;
        latest = spans.latest[i] = Math.max(latest, spans.end[i]);
        let track = free.findIndex((until) => until <= start[i]);
        if (track < 0) track = tracks - 1;
        free[track] = Math.max(free[track], spans.end[i]);
        spans.track[i] = track;
        spans.tracks = Math.max(spans.tracks, track + 1);
    }
    return spans;
}

export {
    DATABASE, DISCARD, FLUSH, GROUPS, JOURNAL, KINDS, READ, WRITE,
    buildBarriers, buildMarks, buildSpans,
};
