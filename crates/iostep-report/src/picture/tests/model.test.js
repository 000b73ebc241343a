import { strict as assert } from "node:assert";
import { test } from "node:test";
import { describe } from "../describe.js";
import { GROUPS, JOURNAL, KINDS, READ } from "../marks.js";
import { Model } from "../model.js";
import { trace } from "./fixture.js";

const every = (list) => list.map(() => true);

test("a sync call has the I/O that it made necessary, flushes too", () => {
    const model = new Model(trace());
    assert.deepEqual([0, 2, 3, 4].map((mark) => model.causeOf(mark)), [0, 0, 0, null]);
    const { ios, bytes, journalBytes } = model.syncTotals;
    assert.deepEqual([ios[0], bytes[0], journalBytes[0]], [4, 12_288, 4096]);
});

test("totals are bytes by group and requests by kind", () => {
    const { bytes, requests } = new Model(trace()).totals();
    assert.equal(bytes[JOURNAL], 4096);
    assert.equal(bytes.reduce((sum, each) => sum + each), 16_384);
    assert.deepEqual(requests, [1, 2, 0, 1]);
});

test("the filter looks for files, processes and classes, whatever their case", () => {
    const model = new Model(trace());
    const shown = (text) => {
        model.filter(every(GROUPS), every(KINDS), text);
        return [...model.shown].flatMap((is, mark) => (is ? [mark] : []));
    };
    assert.deepEqual(shown(""), [0, 1, 2, 3, 4]);
    assert.deepEqual(shown("APP.db"), [0]);
    assert.deepEqual(shown("inode 12"), [1]);
    assert.deepEqual(shown("jbd2"), [2, 3]);
    assert.deepEqual(shown("logged"), [2]);
    assert.deepEqual(shown("nothing"), []);
});

test("hidden groups and kinds are not shown, and flushes stay", () => {
    const model = new Model(trace());
    const kinds = KINDS.map((_, kind) => kind === READ);
    model.filter(every(GROUPS), kinds, "");
    assert.deepEqual([...model.shown], [0, 0, 0, 1, 1]);
    model.filter(GROUPS.map((_, group) => group !== JOURNAL), every(KINDS), "");
    assert.deepEqual([...model.shown], [1, 1, 0, 1, 1]);
});

test("a target has a span in the lanes of its sync call and its commit", () => {
    const model = new Model(trace());
    const { syncs, commits } = model;
    assert.equal(model.spanOf(model.targetOfMark(2), syncs), 0);
    assert.equal(model.spanOf(model.targetOfMark(2), commits), 0);
    assert.equal(model.spanOf(model.targetOfMark(0), commits), null);
    assert.equal(model.spanOf({ mark: null, sync: 0 }, commits), null);
    assert.deepEqual(model.syncNames(0), ["fsync app.db", "app.db"]);
});

test("a commit of another filesystem with the same number is another one", () => {
    const data = trace();
    data.commit.volume_or_0 = Uint8Array.from([2]);
    const model = new Model(data);
    assert.equal(model.spanOf(model.targetOfMark(2), model.commits), undefined);
});

test("a mark and a call are told in words", () => {
    const model = new Model(trace());
    const rows = (target) => Object.fromEntries(describe(model, target).rows);
    assert.equal(describe(model, model.targetOfMark(0)).title, "write 4 KiB at LBA 8,000");
    assert.deepEqual(rows(model.targetOfMark(0)), {
        request: "#1 · 1 of 2 parts of 8 KiB",
        parts: "file data 8 KiB",
        class: "file data (data)",
        file: "/mnt/app/app.db at byte 4,096 · main",
        "dirtied by": "app",
        "submitted by": "app",
        "because of": "fsync of /mnt/app/app.db by app",
        evidence: "bio",
        time: "1.000 ms · 3 µs in the queue · 1.234 µs in the device",
    });
    assert.equal(rows(model.targetOfMark(2))["copy of"], "filesystem block 42");
    assert.equal(rows(model.targetOfMark(2)).request, "#2 · FUA");
    assert.equal(rows(model.targetOfMark(3)).time, "2.001 ms · not complete");
    assert.equal(rows(model.targetOfMark(4)).note, "failed, status 5");
    assert.deepEqual(rows({ mark: null, sync: 0 }), {
        call: "fsync of /mnt/app/app.db by app",
        entered: "0.500 ms",
        took: "3 ms",
        "made necessary": "4 parts of I/O, 12 KiB",
        "of it": "4 KiB of filesystem journal",
    });
});

test("a trace without requests has a model", () => {
    const data = trace();
    for (const table of [data.request, data.segment, data.sync, data.commit]) {
        for (const name of Object.keys(table)) table[name] = new Uint8Array(0);
    }
    const model = new Model(data);
    assert.equal(model.marks.count, 0);
    assert.deepEqual(model.time.full, [-15_000, 1_015_000]);
});
