import { strict as assert } from "node:assert";
import { test } from "node:test";
import { DATABASE, FLUSH, GROUPS, JOURNAL, READ, WRITE } from "../marks.js";
import { buildBarriers, buildMarks, buildSpans } from "../marks.js";
import { trace } from "./fixture.js";

test("each segment is a mark, and a request without any is one", () => {
    const marks = buildMarks(trace());
    assert.equal(marks.count, 5);
    assert.deepEqual([...marks.request], [0, 0, 1, 2, 3]);
    assert.deepEqual([...marks.segment], [0, 1, 2, -1, 3]);
    assert.deepEqual([...marks.sector], [8000, 8008, 1_000_000, 0, 8016]);
    assert.deepEqual([...marks.bytes], [4096, 4096, 4096, 0, 4096]);
    assert.deepEqual([...marks.kind], [WRITE, WRITE, WRITE, FLUSH, READ]);
});

test("a mark's group is that of its class, or its file's part of a database", () => {
    const [database, log, journal, , unknown] = buildMarks(trace()).group;
    assert.equal(database, DATABASE);
    assert.equal(GROUPS[log].id, "database-log");
    assert.equal(journal, JOURNAL);
    assert.equal(GROUPS[unknown].id, "unknown");
    const data = trace();
    data.segment.class[0] = 2;
    data.segment.file_or_0[1] = 0;
    const [metadata, other] = buildMarks(data).group;
    assert.equal(GROUPS[metadata].id, "metadata");
    assert.equal(GROUPS[other].id, "other-file");
});

test("flushes and durable writes are barriers", () => {
    assert.deepEqual(buildBarriers(trace()), { flushes: [2], durable: [1] });
});

test("spans that overlap have tracks of their own, as far as there are any", () => {
    const starts = Float64Array.from([0, 10, 20, 30, 200]);
    const spans = buildSpans(starts, Float64Array.from([101, 91, 81, 0, 11]), 500, 3);
    assert.deepEqual([...spans.end], [100, 100, 100, 500, 210]);
    assert.deepEqual([...spans.track], [0, 1, 2, 2, 0]);
    assert.deepEqual([...spans.latest], [100, 100, 100, 500, 500]);
    assert.equal(spans.tracks, 3);
});
