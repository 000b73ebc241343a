// Finds what is under the pointer. Marks are in the order of time, so a bisection leaves only the
// few pixels around it to look through.

import { lowerBound } from "./columns.js";
import { FLUSH } from "./marks.js";

const REACH = 14;

/** @type {(painter: Painter, x: number, y: number) => Target | null} */
function pick(painter, x, y) {
    const { model, layout } = painter;
    const { plot, lanes } = layout;
    if (x < plot.x - REACH || x > plot.x + plot.width + REACH) return null;
    const inLane = (/** @type {Box} */ lane) => y >= lane.y - 2 && y < lane.y + lane.height + 2;
    if (inLane(lanes["flush, FUA"])) return pickBarrier(painter, x);
    if (inLane(lanes["sync calls"])) return pickSync(painter, x, y);
    if (y < plot.y || y > plot.y + plot.height) return null;
    const { mark, near } = nearestMark(painter, x, y);
    return mark === null ? null : { ...model.targetOfMark(mark), near };
}

/** @param {Painter} painter @param {number} x @param {number} y */
function nearestMark(painter, x, y) {
    const { model } = painter;
    const { marks, shown, time, firstMark, markV } = model;
    const first = firstMark[time.requestAt(painter.u(x - 2 * REACH))];
    const end = firstMark[time.requestAt(painter.u(x + 2 * REACH))];
    let best = /** @type {number | null} */ (null);
    let bestDistance = REACH;
    let near = 0;
    for (let i = first; i < end; i++) {
        if (!shown[i] || marks.kind[i] === FLUSH) continue;
        const dx = painter.markX(i) - x;
        const dy = painter.y(markV[i]) - y;
        // Inside a large mark is as near as at the middle of a small one.
        const distance = Math.max(Math.hypot(dx, dy) - painter.radius(marks.bytes[i]) / 2, 0);
        if (distance <= REACH) near++;
        if (distance <= bestDistance) {
            best = i;
            bestDistance = distance;
        }
    }
    return { mark: best, near };
}

/** @type {(painter: Painter, x: number) => Target | null} */
function pickBarrier(painter, x) {
    const { model } = painter;
    const { flushes, durable } = model.barriers;
    let best = /** @type {number | null} */ (null);
    let bestDistance = REACH;
    for (const requests of [flushes, durable]) {
        const from = lowerBound(requests, model.time.requestAt(painter.u(x - REACH)));
        const end = lowerBound(requests, model.time.requestAt(painter.u(x + REACH)));
        for (let k = from; k < end; k++) {
            const distance = Math.abs(painter.x(model.time.ofRequest(requests[k])) - x);
            if (distance < bestDistance) {
                best = requests[k];
                bestDistance = distance;
            }
        }
    }
    return best === null ? null : model.targetOfMark(model.firstMark[best]);
}

/** @type {(painter: Painter, x: number, y: number) => Target | null} */
function pickSync(painter, x, y) {
    const { model, layout } = painter;
    const { syncs, time } = model;
    const lane = layout.lanes["sync calls"];
    const row = Math.floor(((y - lane.y) / lane.height) * syncs.tracks);
    const track = Math.min(Math.max(row, 0), syncs.tracks - 1);
    let best = /** @type {number | null} */ (null);
    let bestDistance = 4;
    const first = lowerBound(syncs.latest, time.timeAt(painter.u(x - 4)));
    for (let i = first; i < syncs.count; i++) {
        const from = painter.x(time.ofTime(syncs.start[i]));
        if (from > x + 4) break;
        if (syncs.track[i] !== track) continue;
        const distance = Math.max(from - x, x - painter.x(time.ofTime(syncs.end[i])), 0);
        if (distance <= bestDistance) {
            best = i;
            bestDistance = distance;
        }
    }
    return best === null ? null : { mark: null, sync: best };
}

export { pick };
