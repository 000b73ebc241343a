// A trace as picture.rs and columns.rs would tell it: a write of an app's fsync() and its log.

const MS = 1e6;

// Of each request: issue, service, sector, bytes, operation, flags, submitter, sync, segments.
const REQUESTS = [
    [1 * MS, 1235, 8000, 8192, 1, 0, 1, 1, 2],
    [2 * MS, 50_001, 1_000_000, 4096, 1, 2, 2, 1, 1],
    [2 * MS + 1000, 0, 0, 0, 3, 0, 2, 1, 0],
    [9 * MS, 20_001, 8016, 4096, 0, 0, 1, 0, 1],
];
// Of each segment: distance, bytes, class, file, dirtier, cause, commit.
const SEGMENTS = [
    [0, 4096, 0, 1, 1, 1, 0],
    [8, 4096, 0, 2, 1, 1, 0],
    [0, 4096, 1, 0, 2, 1, 8],
    [0, 4096, 3, 0, 0, 0, 0],
];

const column = (rows, at) => Float64Array.from(rows, (row) => row[at]);
const zeros = (rows) => new Uint8Array(rows.length);

function request() {
    const of = (at) => column(REQUESTS, at);
    return {
        issue_ns: of(0),
        wait_ns: Float64Array.from([3000, 0, 0, 0]),
        service_ns_or_0: of(1),
        sector: of(2),
        bytes: of(3),
        operation: of(4),
        flags: of(5),
        submitter_or_0: of(6),
        sync_or_0: of(7),
        segments: of(8),
        status: Uint8Array.from([0, 0, 0, 5]),
        phase: zeros(REQUESTS),
        by_tracer: zeros(REQUESTS),
    };
}

function segment() {
    const of = (at) => column(SEGMENTS, at);
    return {
        distance_sectors: of(0),
        bytes: of(1),
        class: of(2),
        file_or_0: of(3),
        dirtier_or_0: of(4),
        cause_or_0: of(5),
        commit_or_0: of(6),
        volume_or_0: zeros(SEGMENTS),
        evidence: zeros(SEGMENTS),
        file_offset_bytes_or_0: Uint16Array.from([4097, 0, 0, 0]),
        dirtier_by_inode: zeros(SEGMENTS),
        home_or_0: Uint8Array.from([0, 0, 43, 0]),
        home_class_or_0: zeros(SEGMENTS),
    };
}

function trace() {
    const file = { inode: 12, file_type: "main", deleted: false };
    return {
        classes: [
            { name: "file data", layer: "data" },
            { name: "logged block", layer: "journal" },
            { name: "inode table", layer: "metadata" },
            { name: "unknown", layer: "unknown" },
        ],
        evidence: ["bio"],
        operations: ["read", "write", "discard", "flush"],
        flags: [[1, "SYNC"], [2, "FUA"]],
        phases: ["command", "settling"],
        sync_kinds: ["fsync"],
        files: [
            { ...file, path: "/mnt/app/app.db", of_database: "other" },
            { ...file, path: null, of_database: "log" },
        ],
        processes: ["app", "jbd2/loop0"],
        markers: [],
        journal: [[1_000_000, 8192]],
        journal_observed: false,
        request: request(),
        segment: segment(),
        sync: {
            enter_ns: Float64Array.from([0.5 * MS]),
            duration_ns_or_0: Float64Array.from([3 * MS + 1]),
            kind: zeros([0]),
            process_or_0: Uint8Array.from([1]),
            file_or_0: Uint8Array.from([1]),
        },
        commit: {
            id: Uint8Array.from([7]),
            start_ns: Float64Array.from([1.5 * MS]),
            duration_ns_or_0: zeros([0]),
            cause_or_0: Uint8Array.from([1]),
            volume_or_0: zeros([0]),
        },
    };
}

export { trace };
