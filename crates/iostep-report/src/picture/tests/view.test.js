import { strict as assert } from "node:assert";
import { test } from "node:test";
import { TimeAxis } from "../axes.js";
import { View } from "../view.js";

const view = () => new View(new TimeAxis(Float64Array.from([0, 1e6, 2e6, 100e6]), 0, 100e6));

test("zooming keeps what is under the pointer, and ends at the axis", () => {
    const zoomed = view();
    zoomed.zoomTime(0.5, 50e6);
    assert.deepEqual(zoomed.u, [24.25e6, 75.75e6]);
    assert.ok(!zoomed.isWhole);
    zoomed.zoomTime(100, 50e6);
    assert.deepEqual(zoomed.u, zoomed.time.full);
    assert.ok(zoomed.isWhole);
    zoomed.setTime(-50e6, 10e6);
    assert.deepEqual(zoomed.u, [-1.5e6, 58.5e6]);
    zoomed.setTime(5e6, 5e6);
    assert.deepEqual(zoomed.u, [5e6 - 100, 5e6 + 100]);
});

test("panning stops at the ends and keeps the zoom", () => {
    const panned = view();
    panned.setTime(20e6, 10e6);
    panned.setAddresses(0.2, 0.4);
    panned.pan(-5, 0.5);
    assert.deepEqual(panned.u, [-1.5e6, 8.5e6]);
    assert.ok(Math.abs(panned.v[0] - 0.3) < 1e-9 && Math.abs(panned.v[1] - 0.5) < 1e-9);
    panned.reset();
    assert.ok(panned.isWhole);
});

test("the order of requests keeps the same requests in view", () => {
    const ordered = view();
    ordered.setTime(0.5e6, 2.5e6);
    ordered.orderBy(true);
    assert.deepEqual(ordered.u, [0, 3]);
    ordered.orderBy(false);
    assert.ok(ordered.u[0] <= 1e6 && ordered.u[1] >= 2e6 && ordered.u[1] < 100e6);
});
