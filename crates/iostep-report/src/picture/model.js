// What is drawn, and what is known about it.

import { AddressAxis, TimeAxis } from "./axes.js";
import { FLUSH, GROUPS, JOURNAL, KINDS, buildBarriers, buildMarks, buildSpans } from "./marks.js";

const SYNC_TRACKS = 3;
// Below this share of used addresses, the gaps would take nearly the whole picture.
const COMPRESS_BELOW = 0.05;

class Model {
    constructor(/** @type {Data} */ data) {
        const { request, sync, commit } = data;
        this.data = data;
        this.marks = buildMarks(data);
        this.barriers = buildBarriers(data);
        const [first_ns, last_ns] = timeRange(data);
        this.syncs = buildSpans(sync.enter_ns, sync.duration_ns_or_0, last_ns, SYNC_TRACKS);
        this.commits = buildSpans(commit.start_ns, commit.duration_ns_or_0, last_ns, 1);
        // Each filesystem counts its own commits.
        const keys = Array.from(commit.id, (id, i) => `${commit.volume_or_0[i]}:${id}`);
        this.commitOfKey = new Map(keys.map((key, i) => [key, i]));
        this.time = new TimeAxis(request.issue_ns, first_ns, last_ns);
        this.address = new AddressAxis(this.marks);
        this.startsCompressed = this.address.usedShare < COMPRESS_BELOW;
        this.firstMark = firstMarks(data);
        this.shown = new Uint8Array(this.marks.count).fill(1);
        this.markV = new Float64Array(this.marks.count);
        this.syncTotals = this.sumUpSyncs();
        /** @type {Target | null} */
        this.pinned = null;
        /** @type {Target | null} */
        this.hovered = null;
        this.compress(this.startsCompressed);
    }

    // Leaves unused addresses out, or not, and places the marks' middles on the axis.
    compress(/** @type {boolean} */ on) {
        const { marks, address, markV } = this;
        address.compress(on);
        for (let i = 0; i < marks.count; i++) {
            markV[i] = address.of(marks.sector[i] + marks.bytes[i] / 1024);
        }
    }

    // Shows the groups and kinds that are set, of requests that the filter's text is found in.
    /** @type {(groups: boolean[], kinds: boolean[], text: string) => void} */
    filter(groups, kinds, text) {
        const { marks } = this;
        const found = text === "" ? null : this.search(text.toLowerCase());
        for (let i = 0; i < marks.count; i++) {
            const wanted =
                groups[marks.group[i]] && (kinds[marks.kind[i]] || marks.kind[i] === FLUSH);
            this.shown[i] = wanted && (found === null || found(i)) ? 1 : 0;
        }
    }

    /** @type {(text: string) => (mark: number) => boolean} */
    search(text) {
        const has = (/** @type {string} */ name) => name.toLowerCase().includes(text);
        const { segment, request } = this.data;
        const files = this.data.files.map((_, f) => has(this.fileName(f)));
        const processes = this.data.processes.map(has);
        const classes = this.data.classes.map(({ name }) => has(name));
        return (i) => {
            const s = this.marks.segment[i];
            if (processes[request.submitter_or_0[this.marks.request[i]] - 1]) return true;
            if (s < 0) return false;
            return (
                files[segment.file_or_0[s] - 1] ||
                processes[segment.dirtier_or_0[s] - 1] ||
                classes[segment.class[s]]
            );
        };
    }

    // What each sync call made necessary.
    sumUpSyncs() {
        const { marks } = this;
        const count = this.syncs.count;
        const ios = new Uint32Array(count);
        const bytes = new Float64Array(count);
        const journalBytes = new Float64Array(count);
        for (let i = 0; i < marks.count; i++) {
            const sync = this.causeOf(i);
            if (sync === null) continue;
            ios[sync]++;
            bytes[sync] += marks.bytes[i];
            if (marks.group[i] === JOURNAL) journalBytes[sync] += marks.bytes[i];
        }
        return { ios, bytes, journalBytes };
    }

    // Bytes of each group, and requests of each kind.
    totals() {
        const { marks } = this;
        const bytes = GROUPS.map(() => 0);
        const requests = KINDS.map(() => 0);
        for (let i = 0; i < marks.count; i++) {
            bytes[marks.group[i]] += marks.bytes[i];
            if (i === 0 || marks.request[i] !== marks.request[i - 1]) requests[marks.kind[i]]++;
        }
        return { bytes, requests };
    }

    // The sync call that made a mark's I/O necessary; of a flush, the one it was submitted in.
    causeOf(/** @type {number} */ mark) {
        const s = this.marks.segment[mark];
        const or0 =
            s >= 0
                ? this.data.segment.cause_or_0[s]
                : this.data.request.sync_or_0[this.marks.request[mark]];
        return or0 === 0 ? null : or0 - 1;
    }

    /** @type {(mark: number) => Target} */
    targetOfMark(mark) {
        return { mark, sync: this.causeOf(mark) };
    }

    // The span in a lane that belongs to a target.
    /** @type {(target: Target | null, spans: Spans) => number | null | undefined} */
    spanOf(target, spans) {
        if (!target) return null;
        if (spans === this.syncs) return target.sync;
        const s = target.mark === null ? -1 : this.marks.segment[target.mark];
        const { commit_or_0, volume_or_0 } = this.data.segment;
        const or0 = s < 0 ? 0 : commit_or_0[s];
        return or0 === 0 ? null : this.commitOfKey.get(`${volume_or_0[s]}:${or0 - 1}`);
    }

    fileName(/** @type {number} */ file) {
        const { path, inode } = this.data.files[file];
        return path ?? `inode ${inode}`;
    }

    // The names of a sync call, the longest first.
    syncNames(/** @type {number} */ i) {
        const { kind, file_or_0 } = this.data.sync;
        const name = this.data.sync_kinds[kind[i]];
        if (file_or_0[i] === 0) return [name];
        const file = baseName(this.fileName(file_or_0[i] - 1));
        return [`${name} ${file}`, file];
    }
}

const baseName = (/** @type {string} */ path) =>
    path.slice(path.lastIndexOf("/", path.length - 2) + 1);

function timeRange(/** @type {Data} */ { request, sync }) {
    const { issue_ns, service_ns_or_0 } = request;
    let first = Infinity;
    let last = -Infinity;
    const see = (/** @type {number} */ from, /** @type {number} */ to) => {
        if (from < first) first = from;
        if (to > last) last = to;
    };
    issue_ns.forEach((t, i) => see(t, t + service_ns_or_0[i]));
    sync.enter_ns.forEach((t, i) => see(t, t + sync.duration_ns_or_0[i]));
    return first <= last ? [first, last] : [0, 1e6];
}

// The first mark of each request, and the number of marks after the last.
function firstMarks(/** @type {Data} */ { request }) {
    const requests = request.issue_ns.length;
    const first = new Uint32Array(requests + 1);
    for (let r = 0; r < requests; r++) first[r + 1] = first[r] + Math.max(1, request.segments[r]);
    return first;
}

export { Model };
