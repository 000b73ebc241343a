// What helps to read the marks: axes, regions, markers.

import { addressTicks } from "./axes.js";
import { LANE, strokeLine } from "./canvas.js";

function regions(/** @type {Painter} */ painter) {
    const { layout, model } = painter;
    const { plot } = layout;
    return model.data.journal.map(([first, count]) => {
        const top = Math.max(painter.y(model.address.of(first + count)), plot.y);
        const bottom = Math.min(painter.y(model.address.of(first)), plot.y + plot.height);
        return { top, height: bottom - top };
    });
}

function drawRegions(/** @type {Painter} */ painter) {
    const { context, colors, layout } = painter;
    context.fillStyle = colors.region;
    for (const { top, height } of regions(painter)) {
        if (height > 0) context.fillRect(layout.plot.x, top, layout.plot.width, height);
    }
}

// After the marks, on a background of their own, to be read over dense ones.
function drawRegionNames(/** @type {Painter} */ painter) {
    const { context, colors, layout, model } = painter;
    const name = model.data.journal_observed ? "journal (as observed)" : "filesystem journal";
    const width = context.measureText(name).width;
    const left = layout.plot.x + 24;
    context.textBaseline = "middle";
    context.textAlign = "left";
    for (const { top, height } of regions(painter)) {
        if (height < 18) continue;
        context.fillStyle = colors.region;
        context.globalAlpha = 0.8;
        context.fillRect(left - 4, top + 2, width + 8, 15);
        context.globalAlpha = 1;
        context.fillStyle = colors.muted;
        context.fillText(name, left, top + 10);
    }
}

function drawAddressAxis(/** @type {Painter} */ painter) {
    const { context, colors, layout, model } = painter;
    const { plot } = layout;
    context.textAlign = "right";
    context.textBaseline = "middle";
    let lastY = Infinity;
    for (const piece of model.address.pieces) {
        const bottom = Math.min(painter.y(piece.low), plot.y + plot.height);
        const top = Math.max(painter.y(piece.high), plot.y);
        if (bottom <= top) continue;
        const from = model.address.sectorAt(Math.max(piece.low, painter.v(bottom)) + 1e-12);
        const to = model.address.sectorAt(Math.min(piece.high, painter.v(top)) - 1e-12);
        for (const [sector, text] of addressTicks(from, to, (bottom - top) / 34)) {
            const y = painter.y(model.address.of(sector));
            if (lastY - y < 13 || y > plot.y + plot.height) continue;
            lastY = y;
            drawGridLine(painter, plot.x - 4, y, plot.x + plot.width, y);
            context.fillStyle = colors.muted;
            context.fillText(text, plot.x - 7, y);
        }
        if (piece.low > 0) drawBreak(painter, painter.y(piece.low));
    }
    context.textAlign = "left";
    context.fillStyle = colors.text;
    context.fillText("LBA", 4, plot.y - 9);
}

// Where addresses were left out.
/** @type {(painter: Painter, y: number) => void} */
function drawBreak(painter, y) {
    const { context, colors, layout } = painter;
    const { plot } = layout;
    if (y < plot.y || y > plot.y + plot.height) return;
    context.save();
    context.strokeStyle = colors.muted;
    context.setLineDash([1, 4]);
    strokeLine(context, plot.x, y, plot.x + plot.width, y);
    context.setLineDash([]);
    strokeLine(context, plot.x - 5, y + 4, plot.x + 5, y);
    strokeLine(context, plot.x - 5, y, plot.x + 5, y - 4);
    context.restore();
}

/** @type {(painter: Painter, x1: number, y1: number, x2: number, y2: number) => void} */
function drawGridLine(painter, x1, y1, x2, y2) {
    const { context, colors } = painter;
    context.strokeStyle = colors.line;
    context.lineWidth = 1;
    const [left, top, right, bottom] = [x1, y1, x2, y2].map((at) => Math.round(at) + 0.5);
    strokeLine(context, left, top, right, bottom);
}

function drawTimeAxis(/** @type {Painter} */ painter) {
    const { context, colors, layout, model } = painter;
    const { plot } = layout;
    context.textBaseline = "alphabetic";
    context.textAlign = "center";
    let lastEnd = -Infinity;
    for (const [u, text] of model.time.ticks(painter.view.u, plot.width / 95)) {
        const x = painter.x(u);
        drawGridLine(painter, x, plot.y, x, plot.y + plot.height);
        const half = context.measureText(text).width / 2;
        const at = Math.min(Math.max(x, half), layout.width - half);
        if (at - half < lastEnd + 8) continue;
        lastEnd = at + half;
        context.fillStyle = colors.muted;
        context.fillText(text, at, layout.height - 6);
    }
}

function drawMarkers(/** @type {Painter} */ painter) {
    const { context, colors, layout, model } = painter;
    const { plot } = layout;
    context.textBaseline = "alphabetic";
    context.textAlign = "left";
    let lastEnd = plot.x + 26;
    for (const { time_ns, name } of model.data.markers) {
        const x = painter.x(model.time.ofTime(time_ns));
        if (x < plot.x || x > plot.x + plot.width) continue;
        context.save();
        context.strokeStyle = colors.muted;
        context.setLineDash([4, 3]);
        const at = Math.round(x) + 0.5;
        strokeLine(context, at, plot.y - 4, at, layout.height - LANE.axis);
        context.restore();
        const width = context.measureText(name).width;
        const left = Math.min(x - 2, plot.x + plot.width - width);
        if (left < lastEnd + 8) continue;
        lastEnd = left + width;
        context.fillStyle = colors.text;
        context.fillText(name, left, plot.y - 7);
    }
}

export { drawAddressAxis, drawMarkers, drawRegionNames, drawRegions, drawTimeAxis };
