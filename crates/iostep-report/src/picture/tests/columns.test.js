import { strict as assert } from "node:assert";
import { test } from "node:test";
import { lowerBound, unpack } from "../columns.js";

test("byte planes become numbers, in arrays that are wide enough", () => {
    const columns = [
        { name: "request.flags", rows: 2, width: 1, delta: false },
        { name: "request.issue_ns", rows: 3, width: 2, delta: true },
        { name: "segment.bytes", rows: 2, width: 3, delta: false },
        { name: "segment.none", rows: 2, width: 0, delta: false },
        { name: "sync.enter_ns", rows: 1, width: 6, delta: false },
    ];
    const raw = [7, 255, 10, 1, 2, 0, 1, 0, 1, 0, 0, 16, 2, 0, 0, 0, 0, 0, 0, 1];
    const { request, segment, sync } = unpack({ columns }, Uint8Array.from(raw));
    assert.deepEqual(request.flags, Uint8Array.from([7, 255]));
    assert.deepEqual(request.issue_ns, Float64Array.from([10, 267, 269]));
    assert.deepEqual(segment.bytes, Uint32Array.from([131_073, 4096]));
    assert.deepEqual(segment.none, Uint8Array.from([0, 0]));
    assert.deepEqual(sync.enter_ns, Float64Array.from([2 ** 40]));
});

test("the lower bound is the first value that is not below", () => {
    const values = [1, 3, 3, 5];
    const bounds = [0, 1, 2, 3, 4, 5, 6].map((value) => lowerBound(values, value));
    assert.deepEqual(bounds, [0, 0, 1, 1, 3, 3, 4]);
    assert.equal(lowerBound([], 1), 0);
});
