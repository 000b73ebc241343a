// The two axes. Each maps its quantity to a plain coordinate (`u` for time, `v` for addresses);
// zooming and panning know only these coordinates.

// Time in nanoseconds, or the number of the request: bursts with long pauses between them are
// unreadable by time and plain by number.
class TimeAxis {
    constructor(issue_ns, first_ns, last_ns) {
        this.issue_ns = issue_ns;
        const margin = Math.max((last_ns - first_ns) * 0.015, 1000);
        this.timeRange = [first_ns - margin, last_ns + margin];
        this.byOrder = false;
    }

    get full() {
        if (!this.byOrder) return this.timeRange;
        const count = this.issue_ns.length;
        const margin = Math.max(count * 0.015, 1);
        return [-margin, count - 1 + margin];
    }

    ofRequest(r) {
        return this.byOrder ? r : this.issue_ns[r];
    }

    ofTime(t) {
        if (!this.byOrder) return t;
        const next = lowerBound(this.issue_ns, t);
        if (next === 0 || next === this.issue_ns.length) return next - 0.5;
        const before = this.issue_ns[next - 1];
        return next - 1 + (t - before) / (this.issue_ns[next] - before);
    }

    // A time that is not after `u`.
    timeAt(u) {
        if (!this.byOrder) return u;
        return this.issue_ns[Math.floor(u)] ?? (u < 0 ? -Infinity : Infinity);
    }

    // First request at or after `u`.
    requestAt(u) {
        if (this.byOrder) return Math.min(Math.max(Math.ceil(u), 0), this.issue_ns.length);
        return lowerBound(this.issue_ns, u);
    }

    ticks([from, to], wanted) {
        const step = Math.max(niceStep((to - from) / wanted), this.byOrder ? 1 : 1e-3);
        const ticks = [];
        for (let u = Math.ceil(from / step) * step; u <= to; u += step) {
            if (!this.byOrder) ticks.push([u, formatTick(u, step)]);
            else if (u >= 0 && u < this.issue_ns.length) ticks.push([u, `#${formatCount(u + 1)}`]);
        }
        return ticks;
    }
}

function niceStep(least) {
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].find((factor) => factor * power >= least) * power;
}

// Addresses in sectors. Without gaps, the axis is cut into pieces that hold all I/O, each with a
// height by the square root of its length: a log of a few blocks stays visible beside gigabytes.
class AddressAxis {
    constructor(marks) {
        const used = [];
        for (let i = 0; i < marks.count; i++) if (marks.kind[i] !== FLUSH) used.push(i);
        const starts = Float64Array.from(used, (i) => marks.sector[i]).sort();
        const ends = Float64Array.from(used, (i) => marks.sector[i] + marks.bytes[i] / 512).sort();
        this.whole = used.length ? [[starts[0], ends[ends.length - 1]]] : [[0, 8]];
        this.cut = used.length ? cutAtGaps(starts, ends) : this.whole;
        const length = (pieces) => pieces.reduce((sum, [from, to]) => sum + to - from, 0);
        this.usedShare = length(this.cut) / length(this.whole);
        this.compress(false);
    }

    compress(on) {
        this.compressed = on;
        this.pieces = layOut(on ? this.cut : this.whole);
        return this;
    }

    pieceOf(sector) {
        const { pieces } = this;
        let at = 0;
        while (at + 1 < pieces.length && sector >= pieces[at + 1].from) at++;
        return pieces[at];
    }

    // Addresses in a gap go to its edge.
    of(sector) {
        const { from, to, low, high } = this.pieceOf(sector);
        const share = (sector - from) / (to - from);
        return low + Math.min(Math.max(share, 0), 1) * (high - low);
    }

    sectorAt(v) {
        const { pieces } = this;
        const piece = pieces.find(({ high }) => v <= high) ?? pieces[pieces.length - 1];
        const share = (v - piece.low) / (piece.high - piece.low);
        return piece.from + Math.min(Math.max(share, 0), 1) * (piece.to - piece.from);
    }
}

// A gap follows the n-th end if the next start lies beyond it. The greatest gaps are cut out
// until none is left that is worth it: a twentieth of the axis, a hundredth of the whole.
function cutAtGaps(starts, ends) {
    const gaps = [];
    for (let i = 0; i + 1 < starts.length; i++) {
        if (starts[i + 1] > ends[i]) gaps.push([ends[i], starts[i + 1]]);
    }
    gaps.sort((a, b) => b[1] - b[0] - (a[1] - a[0]));
    const whole = ends[ends.length - 1] - starts[0];
    let left = whole;
    const cuts = [];
    for (const gap of gaps.slice(0, 9)) {
        if (gap[1] - gap[0] < Math.max(left / 20, whole / 100)) break;
        left -= gap[1] - gap[0];
        cuts.push(gap);
    }
    cuts.sort((a, b) => a[0] - b[0]);
    const edges = [starts[0], ...cuts.flat(), ends[ends.length - 1]];
    const pieces = [];
    for (let i = 0; i < edges.length; i += 2) pieces.push([edges[i], edges[i + 1]]);
    return pieces;
}

function layOut(ranges) {
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
function addressTicks(from, to, wanted) {
    const step = 2 ** Math.max(0, Math.ceil(Math.log2((to - from) / Math.max(wanted, 1))));
    const ticks = [];
    for (let sector = Math.ceil(from / step) * step; sector <= to; sector += step) {
        if (sector >= 0) ticks.push([sector, formatAddress(Math.abs(sector))]);
    }
    return ticks;
}
