// The two axes. Each maps its quantity to a plain coordinate (`u` for time, `v` for addresses);
// zooming and panning know only these coordinates.

import { lowerBound } from "./columns.js";
import { formatAddress, formatCount, formatTick } from "./format.js";
import { FLUSH } from "./marks.js";

/** @type {(value: number, domain: Interval, range: Interval) => number} */
function project(value, [from, to], [low, high]) {
    return low + ((value - from) / (to - from)) * (high - low);
}

// Time in nanoseconds, or the number of the request: bursts with long pauses between them are
// unreadable by time and plain by number.
class TimeAxis {
    /** @param {Column} issue_ns @param {number} first_ns @param {number} last_ns */
    constructor(issue_ns, first_ns, last_ns) {
        this.issue_ns = issue_ns;
        const margin = Math.max((last_ns - first_ns) * 0.015, 1000);
        /** @type {Interval} */
        this.timeRange = [first_ns - margin, last_ns + margin];
        this.byOrder = false;
    }

    /** @returns {Interval} */
    get full() {
        if (!this.byOrder) return this.timeRange;
        const count = this.issue_ns.length;
        const margin = Math.max(count * 0.015, 1);
        return [-margin, count - 1 + margin];
    }

    ofRequest(/** @type {number} */ r) {
        return this.byOrder ? r : this.issue_ns[r];
    }

    ofTime(/** @type {number} */ t) {
        if (!this.byOrder) return t;
        const next = lowerBound(this.issue_ns, t);
        if (next === 0 || next === this.issue_ns.length) return next - 0.5;
        const before = this.issue_ns[next - 1];
        return next - 1 + (t - before) / (this.issue_ns[next] - before);
    }

    // A time that is not after `u`.
    timeAt(/** @type {number} */ u) {
        if (!this.byOrder) return u;
        return this.issue_ns[Math.floor(u)] ?? (u < 0 ? -Infinity : Infinity);
    }

    // First request at or after `u`.
    requestAt(/** @type {number} */ u) {
        if (this.byOrder) return Math.min(Math.max(Math.ceil(u), 0), this.issue_ns.length);
        return lowerBound(this.issue_ns, u);
    }

    /** @type {(interval: Interval, wanted: number) => [at: number, text: string][]} */
    ticks([from, to], wanted) {
        const step = Math.max(niceStep((to - from) / wanted), this.byOrder ? 1 : 1e-3);
        const ticks = /** @type {[number, string][]} */ ([]);
        for (let u = Math.ceil(from / step) * step; u <= to; u += step) {
            if (!this.byOrder) ticks.push([u, formatTick(u, step)]);
            else if (u >= 0 && u < this.issue_ns.length) ticks.push([u, `#${formatCount(u + 1)}`]);
        }
        return ticks;
    }
}

function niceStep(/** @type {number} */ least) {
    const power = 10 ** Math.floor(Math.log10(least));
    return ([1, 2, 5].find((factor) => factor * power >= least) ?? 10) * power;
}

// Addresses in sectors. Without gaps, the axis is cut into pieces that hold all I/O, each with a
// height by the square root of its length: a log of a few blocks stays visible beside gigabytes.
class AddressAxis {
    constructor(/** @type {Pick<Marks, "count" | "kind" | "sector" | "bytes">} */ marks) {
        const used = /** @type {number[]} */ ([]);
        for (let i = 0; i < marks.count; i++) if (marks.kind[i] !== FLUSH) used.push(i);
        const starts = Float64Array.from(used, (i) => marks.sector[i]).sort();
        const ends = Float64Array.from(used, (i) => marks.sector[i] + marks.bytes[i] / 512).sort();
        this.whole = used.length ? [[starts[0], ends[ends.length - 1]]] : [[0, 8]];
        this.cut = used.length ? cutAtGaps(starts, ends) : this.whole;
        const length = (/** @type {number[][]} */ pieces) =>
            pieces.reduce((sum, [from, to]) => sum + to - from, 0);
        this.usedShare = length(this.cut) / length(this.whole);
        this.compressed = false;
        this.pieces = layOut(this.whole);
    }

    compress(/** @type {boolean} */ on) {
        this.compressed = on;
        this.pieces = layOut(on ? this.cut : this.whole);
    }

    pieceOf(/** @type {number} */ sector) {
        const { pieces } = this;
        let at = 0;
        while (at + 1 < pieces.length && sector >= pieces[at + 1].from) at++;
        return pieces[at];
    }

    // Addresses in a gap go to its edge.
    of(/** @type {number} */ sector) {
        const { from, to, low, high } = this.pieceOf(sector);
        const share = (sector - from) / (to - from);
        return low + Math.min(Math.max(share, 0), 1) * (high - low);
    }

    sectorAt(/** @type {number} */ v) {
        const { pieces } = this;
        const piece = pieces.find(({ high }) => v <= high) ?? pieces[pieces.length - 1];
        const share = (v - piece.low) / (piece.high - piece.low);
        return piece.from + Math.min(Math.max(share, 0), 1) * (piece.to - piece.from);
    }
}

// A gap follows the n-th end if the next start lies beyond it. The greatest gaps are cut out
// until none is left that is worth it: a twentieth of the axis, a hundredth of the whole.
/** @type {(starts: Float64Array, ends: Float64Array) => number[][]} */
function cutAtGaps(starts, ends) {
    const gaps = Array.from(ends, (end, i) => [end, starts[i + 1]])
        .filter(([end, next]) => next > end)
        .sort((a, b) => b[1] - b[0] - (a[1] - a[0]));
    const whole = ends[ends.length - 1] - starts[0];
    let left = whole;
    const cuts = /** @type {number[][]} */ ([]);
    for (const gap of gaps.slice(0, 9)) {
        if (gap[1] - gap[0] < Math.max(left / 20, whole / 100)) break;
        left -= gap[1] - gap[0];
        cuts.push(gap);
    }
    cuts.sort((a, b) => a[0] - b[0]);
    const edges = [starts[0], ...cuts.flat(), ends[ends.length - 1]];
    return edges.flatMap((edge, i) => (i % 2 ? [] : [[edge, edges[i + 1]]]));
}

function layOut(/** @type {number[][]} */ ranges) {
    const padded = ranges.map(([from, to], i) => {
        const margin = Math.max((to - from) * 0.04, 8);
        const before = i > 0 ? (from - ranges[i - 1][1]) / 2 : Infinity;
        const after = i + 1 < ranges.length ? (ranges[i + 1][0] - to) / 2 : Infinity;
        return [from - Math.min(margin, before), to + Math.min(margin, after)];
    });
    const weights = padded.map(([from, to]) => Math.sqrt(to - from));
    const least = weights.reduce((sum, weight) => sum + weight, 0) * 0.07;
    const heights = weights.map((weight) => Math.max(weight, least));
    const total = heights.reduce((sum, height) => sum + height, 0);
    let low = 0;
    return padded.map(([from, to], i) => {
        const piece = { from, to, low, high: low + heights[i] / total };
        low = piece.high;
        return piece;
    });
}

// Ticks of one piece between two addresses, in powers of two as blocks are.
/** @type {(from: number, to: number, wanted: number) => [sector: number, text: string][]} */
function addressTicks(from, to, wanted) {
    const step = 2 ** Math.max(0, Math.ceil(Math.log2((to - from) / Math.max(wanted, 1))));
    const ticks = /** @type {[number, string][]} */ ([]);
    for (let sector = Math.ceil(from / step) * step; sector <= to; sector += step) {
        if (sector >= 0) ticks.push([sector, formatAddress(Math.abs(sector))]);
    }
    return ticks;
}

export { AddressAxis, TimeAxis, addressTicks, project };
