// The part of the two axes that is in view.

// A little more than the axis, so that the outermost marks are whole.
/** @type {Interval} */
const FULL_V = [-0.03, 1.03];
// No closer than a fraction of a microsecond, or of a request.
const LEAST = { time: 200, order: 2 };

class View {
    constructor(/** @type {TimeAxis} */ time) {
        this.time = time;
        this.u = time.full;
        this.v = FULL_V;
    }

    reset() {
        this.u = this.time.full;
        this.v = FULL_V;
    }

    get isWhole() {
        const [from, to] = this.time.full;
        return (
            this.u[0] <= from && this.u[1] >= to && this.v[0] <= FULL_V[0] && this.v[1] >= FULL_V[1]
        );
    }

    /** @type {(from: number, to: number) => void} */
    setTime(from, to) {
        const { byOrder, full } = this.time;
        this.u = clampRange(from, to, full, byOrder ? LEAST.order : LEAST.time);
    }

    /** @type {(from: number, to: number) => void} */
    setAddresses(from, to) {
        this.v = clampRange(from, to, FULL_V, 1e-7);
    }

    /** @type {(factor: number, at: number) => void} */
    zoomTime(factor, at) {
        this.setTime(at - (at - this.u[0]) * factor, at + (this.u[1] - at) * factor);
    }

    /** @type {(factor: number, at: number) => void} */
    zoomAddresses(factor, at) {
        this.setAddresses(at - (at - this.v[0]) * factor, at + (this.v[1] - at) * factor);
    }

    // Shares of what is in view, positive to later and higher.
    /** @type {(du: number, dv: number) => void} */
    pan(du, dv) {
        /** @type {(shown: Interval, share: number, full: Interval) => Interval} */
        const slide = ([from, to], share, [least, most]) => {
            const wanted = share * (to - from);
            const move = Math.min(Math.max(wanted, least - from), most - to);
            return [from + move, to + move];
        };
        this.u = slide(this.u, du, this.time.full);
        this.v = slide(this.v, dv, FULL_V);
    }

    // Changes the time axis and keeps the same requests in view.
    orderBy(/** @type {boolean} */ byOrder) {
        const { time } = this;
        const whole = this.isWhole;
        const first = time.requestAt(this.u[0]);
        const last = Math.max(time.requestAt(this.u[1]) - 1, first);
        time.byOrder = byOrder;
        if (whole || time.issue_ns.length === 0) {
            this.u = time.full;
            return;
        }
        const from = time.ofRequest(Math.min(first, time.issue_ns.length - 1));
        const to = time.ofRequest(Math.min(last, time.issue_ns.length - 1));
        const margin = byOrder ? 1 : (to - from) * 0.02 + LEAST.time;
        this.setTime(from - margin, to + margin);
    }
}

/** @type {(from: number, to: number, full: Interval, smallest: number) => Interval} */
function clampRange(from, to, [least, most], smallest) {
    if (to < from) [from, to] = [to, from];
    if (to - from < smallest) {
        const middle = (from + to) / 2;
        from = middle - smallest / 2;
        to = middle + smallest / 2;
    }
    if (to - from >= most - least) return [least, most];
    if (from < least) return [least, least + to - from];
    if (to > most) return [most - (to - from), most];
    return [from, to];
}

export { FULL_V, View };
