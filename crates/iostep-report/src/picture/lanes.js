// The lanes below the plot: barriers, sync calls, commits.

import { lowerBound } from "./columns.js";
import { JOURNAL } from "./marks.js";
import { SHAPES } from "./shapes.js";

function drawLanes(/** @type {Painter} */ painter) {
    const { context, colors, layout, model } = painter;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const [name, lane] of Object.entries(layout.lanes)) {
        context.fillStyle = colors.muted;
        context.fillText(name, layout.plot.x - 7, lane.y + lane.height / 2);
    }
    painter.clipped(() => {
        drawBarriers(painter);
        const { syncs, commits } = model;
        drawSpans(painter, syncs, layout.lanes["sync calls"], (i) => model.syncNames(i));
        if (layout.lanes.commits) drawSpans(painter, commits, layout.lanes.commits, () => [""]);
    }, true);
}

// A stroke for each flush and a diamond for each FUA write; where they are dense, strokes in
// two rows. One per pixel is enough.
function drawBarriers(/** @type {Painter} */ painter) {
    const { context, colors, model, layout } = painter;
    const lane = layout.lanes["flush, FUA"];
    const flushes = placesOf(painter, model.barriers.flushes);
    const durable = placesOf(painter, model.barriers.durable);
    const dense = flushes.length + durable.length > layout.plot.width / 8;
    const height = dense ? lane.height / 2 : lane.height;
    context.fillStyle = colors.text;
    for (const x of flushes) context.fillRect(x - 0.6, lane.y, 1.2, height);
    context.fillStyle = colors.groups[JOURNAL];
    const path = new Path2D();
    for (const x of durable) {
        if (dense) path.rect(x - 0.6, lane.y + height, 1.2, height);
        else SHAPES.diamond(path, x, lane.y + height / 2, 3.2);
    }
    context.fill(path);
}

/** @type {(painter: Painter, requests: number[]) => number[]} */
function placesOf(painter, requests) {
    const { time } = painter.model;
    const places = /** @type {number[]} */ ([]);
    let last = -Infinity;
    const end = lowerBound(requests, time.requestAt(painter.view.u[1]));
    for (let k = lowerBound(requests, time.requestAt(painter.view.u[0])); k < end; k++) {
        const x = painter.x(time.ofRequest(requests[k]));
        if (x - last < 1) continue;
        last = x;
        places.push(x);
    }
    return places;
}

// Spans of a lane; those of less than a pixel are drawn once per pixel and track.
/** @type {(painter: Painter, spans: Spans, lane: Box, nameOf: (i: number) => string[]) => void} */
function drawSpans(painter, spans, lane, nameOf) {
    const { context, colors, model } = painter;
    const height = lane.height / spans.tracks;
    const right = painter.layout.plot.x + painter.layout.plot.width;
    const last = new Array(spans.tracks).fill(-Infinity);
    const chosen = [model.pinned, model.hovered].map((target) => model.spanOf(target, spans));
    const from = lowerBound(spans.latest, model.time.timeAt(painter.view.u[0]));
    for (let i = from; i < spans.count; i++) {
        const x = painter.x(model.time.ofTime(spans.start[i]));
        if (x > right) break;
        const end = painter.x(model.time.ofTime(spans.end[i]));
        const track = spans.track[i];
        const isChosen = chosen.includes(i);
        if (!isChosen && (end < painter.layout.plot.x || end < last[track] + 1)) continue;
        last[track] = end;
        const y = lane.y + track * height;
        context.fillStyle = isChosen ? colors.accent : colors.span;
        context.fillRect(x, y + 0.5, Math.max(end - x, 1), height - 1);
        if (end - x > 24) {
            context.fillStyle = isChosen ? colors.paper : colors.text;
            drawSpanName(painter, nameOf(i), x, end, y + height / 2);
        }
    }
}

// As much of a span's name as it has room for: kind and file, the file, or its beginning.
/** @type {(painter: Painter, names: string[], x: number, end: number, y: number) => void} */
function drawSpanName(painter, names, x, end, y) {
    const { context, layout } = painter;
    const from = Math.max(x, layout.plot.x) + 3;
    const width = Math.min(end, layout.plot.x + layout.plot.width) - from - 2;
    context.save();
    context.font = '9.5px system-ui, "Segoe UI", sans-serif';
    context.textAlign = "left";
    const whole = names.find((name) => context.measureText(name).width <= width);
    context.fillText(whole ?? shorten(context, names[names.length - 1], width), from, y + 0.5);
    context.restore();
}

/** @type {(context: Context, text: string, width: number) => string} */
function shorten(context, text, width) {
    let length = Math.min(text.length, Math.floor(width / 3));
    while (length > 0 && context.measureText(`${text.slice(0, length)}…`).width > width) length--;
    return length > 2 ? `${text.slice(0, length)}…` : "";
}

export { drawLanes };
