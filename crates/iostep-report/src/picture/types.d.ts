// The types that modules share: the data of picture.rs, and classes for those that do not import
// them.

type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;
type Interval = [from: number, to: number];
type Size = { width: number; height: number };
type Box = Size & { x: number; y: number };
type Context = CanvasRenderingContext2D;

type Model = import("./model.js").Model;
type Painter = import("./paint.js").Painter;
type View = import("./view.js").View;
type TimeAxis = import("./axes.js").TimeAxis;
type Marks = ReturnType<typeof import("./marks.js").buildMarks>;
type Spans = ReturnType<typeof import("./marks.js").buildSpans>;
type ShapeName = "circle" | "square" | "diamond" | "triangle" | "plus" | "cross";

/** What is drawn of a mark, or of several that would cover each other. */
type MarkSymbol = Record<
    "request" | "group" | "kind" | "bytes" | "x" | "y" | "r" | "end" | "top" | "bottom",
    number
>;

/** A mark or a sync call; a mark with the sync call that caused it, and how many marks are near. */
type Target =
    | { mark: number; sync: number | null; near?: number }
    | { mark: null; sync: number; near?: number };
type Drag = { x: number; y: number; pan: boolean; moved: boolean; last: { x: number; y: number } };
type Description = { title: string; group: number | null; rows: [name: string, value: string][] };

/** Where a column lies in the inflated stream, as columns.rs has it. */
type PackedColumn = { name: string; rows: number; width: number; delta: boolean };
type FileName = {
    path: string | null; inode: number; file_type: string; deleted: boolean;
    of_database: "log" | "other" | null;
};
/** The lists of picture.rs, with its columns by table: `data.request.issue_ns`. */
type Data = {
    columns: PackedColumn[];
    classes: { name: string; layer: string }[];
    evidence: string[];
    operations: string[];
    flags: [bit: number, name: string][];
    phases: string[];
    sync_kinds: string[];
    files: FileName[];
    processes: string[];
    markers: { time_ns: number; name: string; step: boolean }[];
    journal: [first: number, sectors: number][];
    journal_observed: boolean;
    request: Record<
        | "issue_ns" | "wait_ns" | "service_ns_or_0" | "sector" | "bytes" | "operation" | "flags"
        | "status" | "submitter_or_0" | "sync_or_0" | "segments" | "phase" | "by_tracer",
        Column
    >;
    segment: Record<
        | "distance_sectors" | "bytes" | "class" | "evidence" | "file_or_0" | "dirtier_or_0"
        | "file_offset_bytes_or_0" | "dirtier_by_inode" | "cause_or_0" | "commit_or_0" | "volume_or_0"
        | "home_or_0" | "home_class_or_0",
        Column
    >;
    sync: Record<"enter_ns" | "duration_ns_or_0" | "kind" | "process_or_0" | "file_or_0", Column>;
    commit: Record<
        "id" | "start_ns" | "duration_ns_or_0" | "cause_or_0" | "volume_or_0", Column>;
};
