import { strict as assert } from "node:assert";
import { test } from "node:test";
import { project } from "../axes.js";
import { layOutCanvas } from "../canvas.js";
import { GROUPS, KINDS } from "../marks.js";
import { Model } from "../model.js";
import { pick } from "../pick.js";
import { View } from "../view.js";
import { trace } from "./fixture.js";

// What picking needs of a painter, without a canvas.
function painter() {
    const model = new Model(trace());
    const view = new View(model.time);
    const layout = layOutCanvas({ width: 1000, height: 500 }, 1, true);
    const x = (u) => project(u, view.u, layout.across);
    return {
        model,
        layout,
        x,
        y: (v) => project(v, view.v, layout.upwards),
        u: (at) => project(at, layout.across, view.u),
        radius: () => 4,
        markX: (mark) => x(model.time.ofRequest(model.marks.request[mark])),
    };
}

test("the nearest mark is picked, and those near it are counted", () => {
    const all = painter();
    const y = all.y(all.model.markV[2]);
    assert.deepEqual(pick(all, all.markX(2) + 3, y - 2), { mark: 2, sync: 0, near: 1 });
    assert.equal(pick(all, all.markX(2) + 40, y), null);
    assert.equal(pick(all, all.layout.plot.x - 50, y), null);
    assert.equal(pick(all, all.markX(2), 2), null);
    all.model.compress(false);
    assert.equal(pick(all, all.markX(0), all.y(all.model.markV[0])).near, 2);
});

test("what is hidden cannot be picked", () => {
    const all = painter();
    all.model.filter(GROUPS.map(() => true), KINDS.map(() => true), "no such file");
    assert.equal(pick(all, all.markX(2), all.y(all.model.markV[2])), null);
});

test("lanes give their barriers and their calls", () => {
    const all = painter();
    const middle = ({ y, height }) => y + height / 2;
    const { lanes } = all.layout;
    assert.equal(pick(all, all.markX(3) + 1, middle(lanes["flush, FUA"])).mark, 3);
    assert.equal(pick(all, all.markX(4), middle(lanes["flush, FUA"])), null);
    assert.deepEqual(pick(all, all.x(3e6), middle(lanes["sync calls"])), { mark: null, sync: 0 });
    assert.equal(pick(all, all.x(8e6), middle(lanes["sync calls"])), null);
    assert.equal(pick(all, all.x(3e6), middle(lanes.commits)), null);
});
