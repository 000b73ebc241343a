import { strict as assert } from "node:assert";
import { test } from "node:test";
import { AddressAxis, TimeAxis, addressTicks, project } from "../axes.js";
import { FLUSH, WRITE } from "../marks.js";

const times = Float64Array.from([1e6, 2e6, 10e6]);
const marksAt = (sectors) => ({
    count: sectors.length,
    kind: sectors.map((sector) => (sector === null ? FLUSH : WRITE)),
    sector: sectors.map((sector) => sector ?? 0),
    bytes: sectors.map((sector) => (sector === null ? 0 : 4096)),
});

test("a value keeps its share of the interval, and may lie outside", () => {
    assert.equal(project(5, [0, 10], [100, 200]), 150);
    assert.equal(project(5, [0, 10], [200, 100]), 150);
    assert.equal(project(-1, [0, 10], [100, 200]), 90);
});

test("by order each request has the same width, and times lie between them", () => {
    const axis = new TimeAxis(times, 1e6, 10e6);
    assert.equal(axis.ofTime(6e6), 6e6);
    assert.equal(axis.ofRequest(2), 10e6);
    assert.equal(axis.requestAt(1.5e6), 1);
    axis.byOrder = true;
    assert.equal(axis.ofRequest(2), 2);
    assert.deepEqual([0, 1e6, 6e6, 20e6].map((t) => axis.ofTime(t)), [-0.5, -0.5, 1.5, 2.5]);
    assert.equal(axis.timeAt(1.9), 2e6);
    assert.deepEqual([-3, 0.5, 9].map((u) => axis.requestAt(u)), [0, 1, 3]);
    assert.deepEqual(axis.full, [-1, 3]);
});

test("ticks are round, and of requests only where there are any", () => {
    const axis = new TimeAxis(times, 1e6, 10e6);
    const texts = (interval, wanted) => axis.ticks(interval, wanted).map(([, text]) => text);
    assert.deepEqual(texts([0, 10e6], 5), ["0 ms", "2 ms", "4 ms", "6 ms", "8 ms", "10 ms"]);
    axis.byOrder = true;
    assert.deepEqual(texts([-1, 9], 10), ["#1", "#2", "#3"]);
});

test("gaps in the addresses are cut out, and both ends of each stay in view", () => {
    const axis = new AddressAxis(marksAt([0, 8, 1_000_000, 1_000_008, null]));
    assert.deepEqual(axis.whole, [[0, 1_000_016]]);
    assert.deepEqual(axis.cut, [[0, 16], [1_000_000, 1_000_016]]);
    assert.equal(axis.usedShare, 32 / 1_000_016);
    axis.compress(true);
    assert.equal(axis.pieces.length, 2);
    assert.ok(axis.of(16) < 0.5 && axis.of(1_000_000) > 0.5);
    assert.equal(axis.of(500_000), axis.pieces[0].high);
    for (const sector of [0, 12, 1_000_004]) {
        assert.ok(Math.abs(axis.sectorAt(axis.of(sector)) - sector) < 1e-3);
    }
    axis.compress(false);
    assert.equal(axis.pieces.length, 1);
});

test("gaps that are not worth it stay, and heights are roots of lengths", () => {
    const every8 = Array.from({ length: 200 }, (_, i) => i * 8 + (i < 100 ? 0 : 40));
    assert.equal(new AddressAxis(marksAt(every8)).cut.length, 1);
    const axis = new AddressAxis(marksAt([0, 92, 1_000_000, ...every8.map((s) => s + 1_000_008)]));
    axis.compress(true);
    const [low, high] = axis.pieces.map((piece) => piece.high - piece.low);
    assert.ok(high / low > 3 && high / low < 4.5, `${high / low}`);
});

test("an axis without addresses has a length", () => {
    const axis = new AddressAxis(marksAt([null]));
    assert.ok(axis.of(4) > 0 && axis.of(4) < 1);
});

test("ticks of addresses lie at powers of two", () => {
    const sectors = addressTicks(100, 5000, 4).map(([sector]) => sector);
    assert.deepEqual(sectors, [2048, 4096]);
    assert.deepEqual(addressTicks(-8, 8, 2).map(([, text]) => text), ["0", "4 KiB"]);
});
