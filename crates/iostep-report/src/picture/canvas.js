// Where things are on the canvas, in CSS pixels, and in which colours.

import { GROUPS } from "./marks.js";

const MARGIN = { left: 84, right: 14, top: 20 };
const LANE = { gap: 6, barrier: 13, track: 11, commit: 7, axis: 22 };
const FONT = '11px system-ui, "Segoe UI", sans-serif';

function readColors() {
    const style = getComputedStyle(document.documentElement);
    const read = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    return {
        text: read("text"),
        muted: read("muted"),
        line: read("line"),
        paper: read("paper"),
        region: read("region"),
        accent: read("accent"),
        span: read("span"),
        groups: GROUPS.map(({ id }) => read(id)),
    };
}

/** @param {Size} size @param {number} tracks @param {boolean} hasCommits */
function layOutCanvas({ width, height }, tracks, hasCommits) {
    /** @type {Record<string, Box>} */
    const lanes = {};
    const plotWidth = Math.max(width - MARGIN.left - MARGIN.right, 50);
    let bottom = height - LANE.axis;
    const lane = (/** @type {string} */ name, /** @type {number} */ size) => {
        bottom -= size;
        lanes[name] = { x: MARGIN.left, y: bottom, width: plotWidth, height: size };
        bottom -= LANE.gap;
    };
    if (hasCommits) lane("commits", LANE.commit);
    lane("sync calls", tracks * LANE.track);
    lane("flush, FUA", LANE.barrier);
    const plot = {
        x: MARGIN.left,
        y: MARGIN.top,
        width: plotWidth,
        height: Math.max(bottom - MARGIN.top, 50),
    };
    /** @type {Interval} */
    const across = [plot.x, plot.x + plot.width];
    /** @type {Interval} */
    const upwards = [plot.y + plot.height, plot.y];
    return { width, height, plot, lanes, across, upwards };
}

function contextOf(/** @type {HTMLCanvasElement} */ canvas) {
    return /** @type {Context} */ (canvas.getContext("2d"));
}

// Gives a canvas the pixels that the screen has for it; returns its size in CSS pixels.
function fitCanvas(/** @type {HTMLCanvasElement} */ canvas) {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth, clientHeight } = canvas;
    canvas.width = Math.round(clientWidth * ratio);
    canvas.height = Math.round(clientHeight * ratio);
    contextOf(canvas).setTransform(ratio, 0, 0, ratio, 0, 0);
    return { width: clientWidth, height: clientHeight };
}

/** @type {(context: Context, x1: number, y1: number, x2: number, y2: number) => void} */
function strokeLine(context, x1, y1, x2, y2) {
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
}

export { FONT, LANE, MARGIN, contextOf, fitCanvas, layOutCanvas, readColors, strokeLine };
