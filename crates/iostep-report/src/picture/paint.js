// Draws the picture: regions, marks (or their density when there are too many to tell apart),
// lanes of barriers, sync calls and commits, axes.

import { project } from "./axes.js";
import { FONT, contextOf, fitCanvas, layOutCanvas, readColors } from "./canvas.js";
import { lowerBound } from "./columns.js";
import { formatKib } from "./format.js";
import { drawAddressAxis, drawMarkers, drawRegionNames, drawRegions, drawTimeAxis } from "./guides.js";
import { drawLanes } from "./lanes.js";
import { DISCARD, FLUSH, GROUPS, KINDS, READ, WRITE } from "./marks.js";
import { SHAPES } from "./shapes.js";

// Above this many marks per pixel of width they are counted in cells, not drawn one by one.
const MOST_PER_PIXEL = 5;
// Below this many, marks are drawn by size, so that none hides another.
const MOST_SEPARATE = 2500;
const MOST_LABELS = 150;
const CELL = 3;
// How far beyond its end a sync call's I/O is looked for, and how much of it is ringed.
const LATE_NS = 1e9;
const MOST_RELATIVES = 4000;

class Painter {
    /** @param {HTMLCanvasElement} canvas @param {Model} model @param {View} view */
    constructor(canvas, model, view) {
        this.canvas = canvas;
        this.model = model;
        this.view = view;
        this.context = contextOf(canvas);
        this.cells = document.createElement("canvas");
        this.colors = readColors();
        this.layout = layOutCanvas({ width: 0, height: 0 }, 1, false);
        this.base = 1;
    }

    recolor() {
        this.colors = readColors();
    }

    resize() {
        const { syncs, commits } = this.model;
        this.layout = layOutCanvas(fitCanvas(this.canvas), syncs.tracks, commits.count > 0);
    }

    x(/** @type {number} */ u) {
        return project(u, this.view.u, this.layout.across);
    }

    y(/** @type {number} */ v) {
        return project(v, this.view.v, this.layout.upwards);
    }

    u(/** @type {number} */ x) {
        return project(x, this.layout.across, this.view.u);
    }

    v(/** @type {number} */ y) {
        return project(y, this.layout.upwards, this.view.v);
    }

    draw() {
        const { context, layout, colors } = this;
        context.clearRect(0, 0, layout.width, layout.height);
        context.font = FONT;
        context.lineWidth = 1;
        drawRegions(this);
        drawAddressAxis(this);
        drawTimeAxis(this);
        const most = MOST_PER_PIXEL * layout.plot.width;
        const { count, marks } = this.marksInView(most);
        this.base = this.baseRadius(count);
        this.clipped(() => (count > most ? this.drawCells() : this.drawSymbols(marks)));
        drawRegionNames(this);
        drawMarkers(this);
        drawLanes(this);
        this.drawChosen();
        context.strokeStyle = colors.line;
        const { x, y, width, height } = layout.plot;
        context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
        return { count, density: count > most };
    }

    /** @type {(body: () => void, lanes?: boolean) => void} */
    clipped(body, lanes = false) {
        const { context, layout } = this;
        const { x, y, width, height } = layout.plot;
        context.save();
        context.beginPath();
        context.rect(x, lanes ? 0 : y, width, lanes ? layout.height : height);
        context.clip();
        body();
        context.restore();
    }

    // Marks [first, end) whose requests were issued in view.
    range() {
        const { time, firstMark } = this.model;
        const first = time.requestAt(this.view.u[0]);
        const end = time.requestAt(this.view.u[1]);
        return [firstMark[first], firstMark[end]];
    }

    // How many marks are in view, and which, as far as there are not more than `most`.
    marksInView(/** @type {number} */ most) {
        const { marks, shown, markV } = this.model;
        const [from, to] = this.view.v;
        const [first, end] = this.range();
        const inView = [];
        let count = 0;
        for (let i = first; i < end; i++) {
            if (!shown[i] || marks.kind[i] === FLUSH || markV[i] < from || markV[i] > to) continue;
            if (++count <= most) inView.push(i);
        }
        return { count, marks: inView };
    }

    // Radius of a 4 KiB mark: large when there is room.
    baseRadius(/** @type {number} */ count) {
        if (count <= 80) return 4.4;
        if (count <= 400) return 3.4;
        return count <= 2000 ? 2.4 : 1.7;
    }

    radius(/** @type {number} */ bytes) {
        return Math.min(Math.max(this.base * Math.sqrt(bytes / 4096), 1.3), this.base * 6);
    }

    markX(/** @type {number} */ i) {
        return this.x(this.model.time.ofRequest(this.model.marks.request[i]));
    }

    markY(/** @type {number} */ i) {
        return this.y(this.model.markV[i]);
    }

    // The height of the addresses that a mark covers, in pixels.
    markHeight(/** @type {number} */ i) {
        const { marks, address } = this.model;
        const end = marks.sector[i] + marks.bytes[i] / 512;
        return this.y(address.of(marks.sector[i])) - this.y(address.of(end));
    }

    drawSymbols(/** @type {number[]} */ marks) {
        const symbols = this.symbols(marks);
        this.drawTails(symbols);
        if (symbols.length <= MOST_SEPARATE) this.drawSeparately(symbols);
        else this.drawTogether(symbols);
        if (symbols.length <= MOST_LABELS) this.drawSizes(symbols);
    }

    // The small ones on top of the large, each with an edge of its own.
    drawSeparately(/** @type {MarkSymbol[]} */ symbols) {
        for (const symbol of [...symbols].sort((a, b) => b.r - a.r)) {
            const path = new Path2D();
            SHAPES[GROUPS[symbol.group].shape](path, symbol.x, symbol.y, symbol.r);
            this.fillPath(path, symbol.kind, symbol.group, symbol.r);
        }
    }

    // One path for all of a group and kind: far faster, and nobody could tell thousands apart.
    drawTogether(/** @type {MarkSymbol[]} */ symbols) {
        const paths = GROUPS.map(() => KINDS.map(() => new Path2D()));
        for (const { x, y, r, group, kind } of symbols) {
            SHAPES[GROUPS[group].shape](paths[group][kind], x, y, r);
        }
        paths.forEach((kinds, group) => {
            for (const kind of [WRITE, READ, DISCARD]) this.fillPath(kinds[kind], kind, group, 0);
        });
    }

    // One symbol for each mark in view, but for neighbours of one request and group that would
    // cover each other: they are one I/O to the eye, and the papers' figures draw them so.
    symbols(/** @type {number[]} */ inView) {
        const { marks } = this.model;
        const symbols = /** @type {MarkSymbol[]} */ ([]);
        let last = /** @type {MarkSymbol | null} */ (null);
        for (const i of inView) {
            const height = this.markHeight(i);
            const top = this.markY(i) - height / 2;
            const joins = last?.request === marks.request[i] && last.group === marks.group[i];
            if (last && joins && Math.abs(last.top - top) < 4 * this.base) {
                last.bytes += marks.bytes[i];
                last.top = top;
            } else {
                last = this.symbol(i, top, height);
                symbols.push(last);
            }
        }
        for (const symbol of symbols) {
            symbol.y = (symbol.top + symbol.bottom) / 2;
            symbol.r = this.radius(symbol.bytes);
        }
        return symbols;
    }

    /** @type {(i: number, top: number, height: number) => MarkSymbol} */
    symbol(i, top, height) {
        const { marks, data, time } = this.model;
        const request = marks.request[i];
        const { issue_ns, service_ns_or_0 } = data.request;
        const end_ns = issue_ns[request] + Math.max(service_ns_or_0[request] - 1, 0);
        const x = this.markX(i);
        return {
            request,
            group: marks.group[i],
            kind: marks.kind[i],
            bytes: marks.bytes[i],
            x,
            end: time.byOrder ? x : this.x(end_ns),
            top,
            bottom: top + height,
            y: 0,
            r: 0,
        };
    }

    // Writes are filled, reads hollow, discards hollow and dashed. The edge in the paper's colour
    // keeps neighbours apart; the smallest would be wiped out by those of their neighbours.
    /** @type {(path: Path2D, kind: number, group: number, r: number) => void} */
    fillPath(path, kind, group, r) {
        const { context, colors } = this;
        const color = colors.groups[group];
        context.fillStyle = kind === WRITE ? color : colors.paper;
        context.strokeStyle = kind === WRITE ? colors.paper : color;
        context.lineWidth = kind === WRITE || this.base < 2 ? 1 : 1.6;
        context.setLineDash(kind === DISCARD ? [2, 2] : []);
        context.fill(path);
        if (kind !== WRITE || r > 3) context.stroke(path);
        context.setLineDash([]);
    }

    // Lines from issue to completion, and over the addresses, where they are longer than the
    // symbol.
    drawTails(/** @type {MarkSymbol[]} */ symbols) {
        const { context, colors } = this;
        context.globalAlpha = 0.5;
        context.lineWidth = 2;
        for (const { x, y, r, end, top, bottom, group } of symbols) {
            const long = end - x > r + 2;
            const high = bottom - top > 2.5 * r;
            if (!long && !high) continue;
            context.strokeStyle = colors.groups[group];
            context.beginPath();
            if (long) {
                context.moveTo(x, y);
                context.lineTo(end, y);
            }
            if (high) {
                context.moveTo(x, top);
                context.lineTo(x, bottom);
            }
            context.stroke();
        }
        context.globalAlpha = 1;
    }

    // The size in KiB beside each mark, as in ATC'13 figure 4, where it covers nothing.
    drawSizes(/** @type {MarkSymbol[]} */ symbols) {
        const { context, colors, layout } = this;
        context.fillStyle = colors.text;
        context.textBaseline = "middle";
        context.textAlign = "left";
        const boxOf = (/** @type {MarkSymbol} */ { x, y, r }) =>
            ({ x: x - r, y: y - r, width: 2 * r, height: 2 * r });
        const taken = symbols.map(boxOf);
        for (const { x, y, r, bytes } of symbols) {
            const text = formatKib(bytes);
            const width = context.measureText(text).width;
            const spots = [
                [x + r + 2, y - 5],
                [x - width / 2, y - r - 12],
                [x - width / 2, y + r + 2],
                [x - r - 2 - width, y - 5],
            ];
            const boxes = spots.map(([left, top]) => ({ x: left, y: top, width, height: 10 }));
            const isFree = (/** @type {Box} */ spot) =>
                spot.y > layout.plot.y && !taken.some((other) => overlaps(spot, other));
            const box = boxes.find(isFree);
            if (!box) continue;
            taken.push(box);
            context.fillText(text, box.x, box.y + 5);
        }
    }

    // Cells of a few pixels, each in the colour of the class with the most bytes in it and the
    // stronger the more marks it holds.
    drawCells() {
        const { plot } = this.layout;
        const columns = Math.ceil(plot.width / CELL);
        const rows = Math.ceil(plot.height / CELL);
        const cells = this.countCells(columns, rows);
        const image = new ImageData(columns, rows);
        const pixels = new Uint32Array(image.data.buffer);
        const colors = this.colors.groups.map(parseColor);
        const most = Math.log1p(cells.most);
        for (let c = 0; c < cells.count.length; c++) {
            if (cells.count[c] === 0) continue;
            const alpha = 0.4 + (0.6 * Math.log1p(cells.count[c])) / most;
            pixels[c] = (Math.round(alpha * 255) << 24) | colors[cells.group(c)];
        }
        this.cells.width = columns;
        this.cells.height = rows;
        contextOf(this.cells).putImageData(image, 0, 0);
        this.context.imageSmoothingEnabled = false;
        this.context.drawImage(this.cells, plot.x, plot.y, columns * CELL, rows * CELL);
    }

    /** @param {number} columns @param {number} rows */
    countCells(columns, rows) {
        const { marks, shown, markV, time } = this.model;
        const { plot } = this.layout;
        const size = columns * rows;
        const count = new Uint32Array(size);
        const bytes = GROUPS.map(() => new Float32Array(size));
        const [first, end] = this.range();
        let most = 0;
        for (let i = first; i < end; i++) {
            if (!shown[i] || marks.kind[i] === FLUSH) continue;
            const column = Math.floor((this.x(time.ofRequest(marks.request[i])) - plot.x) / CELL);
            const row = Math.floor((this.y(markV[i]) - plot.y) / CELL);
            if (column < 0 || column >= columns || row < 0 || row >= rows) continue;
            const cell = row * columns + column;
            most = Math.max(most, ++count[cell]);
            bytes[marks.group[i]][cell] += marks.bytes[i];
        }
        const group = (/** @type {number} */ cell) => {
            let best = 0;
            for (let g = 1; g < bytes.length; g++) if (bytes[g][cell] > bytes[best][cell]) best = g;
            return best;
        };
        return { count, most, group };
    }

    // The target under the pointer and the pinned one, with all that shares their sync call.
    drawChosen() {
        const { model, colors } = this;
        this.clipped(() => {
            for (const target of [model.pinned, model.hovered]) {
                if (!target) continue;
                if (target.sync !== null) this.drawRelatives(target.sync);
                if (target.mark !== null) this.drawRing(target.mark, colors.text, 2);
            }
        }, true);
    }

    drawRelatives(/** @type {number} */ sync) {
        const { model, colors } = this;
        const { start, end } = model.syncs;
        const { issue_ns } = model.data.request;
        const first = model.firstMark[lowerBound(issue_ns, start[sync])];
        const last = model.firstMark[lowerBound(issue_ns, end[sync] + LATE_NS)];
        for (let i = first; i < Math.min(last, first + MOST_RELATIVES); i++) {
            if (model.shown[i] && model.causeOf(i) === sync) this.drawRing(i, colors.accent, 1.5);
        }
    }

    /** @type {(mark: number, color: string, width: number) => void} */
    drawRing(mark, color, width) {
        const { context, model } = this;
        const place = this.placeOf({ mark, sync: null });
        if (!place) return;
        const isFlush = model.marks.kind[mark] === FLUSH;
        const r = isFlush ? 6 : this.radius(model.marks.bytes[mark]) + 3;
        context.strokeStyle = color;
        context.lineWidth = width;
        context.beginPath();
        context.arc(place.x, place.y, r, 0, 2 * Math.PI);
        context.stroke();
    }

    // The middle of a mark, or the beginning of a sync call; null if that is out of view.
    placeOf(/** @type {Target} */ { mark, sync }) {
        const { model, layout } = this;
        const { plot, lanes } = layout;
        const { time, syncs } = model;
        const x = mark === null ? this.x(time.ofTime(syncs.start[sync])) : this.markX(mark);
        if (x < plot.x || x > plot.x + plot.width) return null;
        if (mark === null || model.marks.kind[mark] === FLUSH) {
            const lane = lanes[mark === null ? "sync calls" : "flush, FUA"];
            return { x, y: lane.y + lane.height / 2 };
        }
        const y = this.markY(mark);
        return y < plot.y || y > plot.y + plot.height ? null : { x, y };
    }
}

/** @type {(a: Box, b: Box) => boolean} */
const overlaps = (a, b) =>
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

// `#rrggbb` as the low three bytes of a little-endian RGBA pixel.
function parseColor(/** @type {string} */ text) {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
    return (b << 16) | (g << 8) | r;
}

export { Painter };
