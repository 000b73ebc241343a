// The strip below the picture: all bytes over the whole time, and a brush for what is in view.

import { project } from "./axes.js";
import { FONT, MARGIN, contextOf, fitCanvas } from "./canvas.js";
import { GROUPS } from "./marks.js";

class Overview {
    /** @param {HTMLCanvasElement} canvas @param {Painter} painter @param {() => void} onChange */
    constructor(canvas, painter, onChange) {
        this.canvas = canvas;
        this.painter = painter;
        this.view = painter.view;
        this.onChange = onChange;
        this.context = contextOf(canvas);
        this.size = { width: 0, height: 0 };
        /** @type {Interval} */
        this.across = [MARGIN.left, MARGIN.left + 50];
        this.bytes = GROUPS.map(() => new Float64Array(0));
        this.most = 0;
        /** @type {{ edge: number } | { last: number } | null} */
        this.drag = null;
        canvas.addEventListener("pointerdown", (event) => this.start(event));
        canvas.addEventListener("pointermove", (event) => this.move(event));
        canvas.addEventListener("pointerup", () => (this.drag = null));
        canvas.addEventListener("pointercancel", () => (this.drag = null));
    }

    resize() {
        this.size = fitCanvas(this.canvas);
        this.across = [MARGIN.left, Math.max(this.size.width - MARGIN.right, MARGIN.left + 50)];
        this.count();
    }

    // Bytes by column and group; a flush has none and is not seen here.
    count() {
        const { model } = this.painter;
        const { marks, shown, time } = model;
        const [from, to] = time.full;
        const columns = Math.ceil((this.across[1] - this.across[0]) / 2);
        this.bytes = GROUPS.map(() => new Float64Array(columns));
        const scale = columns / (to - from);
        for (let i = 0; i < marks.count; i++) {
            if (!shown[i]) continue;
            const column = Math.floor((time.ofRequest(marks.request[i]) - from) * scale);
            this.bytes[marks.group[i]][Math.min(column, columns - 1)] += marks.bytes[i];
        }
        this.most = 0;
        for (let c = 0; c < columns; c++) this.most = Math.max(this.most, this.sum(c));
    }

    sum(/** @type {number} */ column) {
        return this.bytes.reduce((sum, bytes) => sum + bytes[column], 0);
    }

    x(/** @type {number} */ u) {
        return project(u, this.painter.model.time.full, this.across);
    }

    u(/** @type {number} */ x) {
        return project(x, this.across, this.painter.model.time.full);
    }

    draw() {
        const { context } = this;
        const { colors } = this.painter;
        const { width, height } = this.size;
        const [left, right] = this.across;
        context.clearRect(0, 0, width, height);
        for (let c = 0; c < this.bytes[0].length; c++) this.drawColumn(c);
        context.strokeStyle = colors.line;
        context.lineWidth = 1;
        context.strokeRect(left + 0.5, 0.5, right - left - 1, height - 1);
        const from = this.x(this.view.u[0]);
        const to = this.x(this.view.u[1]);
        context.globalAlpha = 0.72;
        context.fillStyle = colors.paper;
        context.fillRect(left, 0, from - left, height);
        context.fillRect(to, 0, right - to, height);
        context.globalAlpha = 1;
        context.strokeStyle = colors.muted;
        context.lineWidth = 1.5;
        context.strokeRect(from, 0.75, Math.max(to - from, 2), height - 1.5);
        context.fillStyle = colors.muted;
        context.font = FONT;
        context.textAlign = "right";
        context.textBaseline = "middle";
        context.fillText("all, log bytes", left - 7, height / 2);
    }

    // Logarithms, or one checkpoint would flatten everything else.
    drawColumn(/** @type {number} */ column) {
        const sum = this.sum(column);
        if (sum === 0) return;
        const full = Math.max((logarithm(sum) / logarithm(this.most)) * (this.size.height - 4), 1);
        let y = this.size.height - 1;
        this.bytes.forEach((bytes, group) => {
            const part = (bytes[column] / sum) * full;
            this.context.fillStyle = this.painter.colors.groups[group];
            this.context.fillRect(this.across[0] + column * 2, y - part, 2, part);
            y -= part;
        });
    }

    // Near an edge of the brush the edge moves, inside it the whole brush, elsewhere a new one
    // begins.
    start(/** @type {PointerEvent} */ event) {
        const x = event.offsetX;
        const from = this.x(this.view.u[0]);
        const to = this.x(this.view.u[1]);
        this.canvas.setPointerCapture(event.pointerId);
        if (Math.abs(x - from) < 6) this.drag = { edge: this.view.u[1] };
        else if (Math.abs(x - to) < 6) this.drag = { edge: this.view.u[0] };
        else if (x > from && x < to && !this.view.isWhole) this.drag = { last: x };
        else this.drag = { edge: this.u(x) };
    }

    move(/** @type {PointerEvent} */ event) {
        const { drag, view } = this;
        if (!drag) return;
        if ("edge" in drag) view.setTime(drag.edge, this.u(event.offsetX));
        else {
            const move = this.u(event.offsetX) - this.u(drag.last);
            view.pan(move / (view.u[1] - view.u[0]), 0);
            drag.last = event.offsetX;
        }
        this.onChange();
    }
}

// Bytes in blocks, so that a single one is seen and small.
const logarithm = (/** @type {number} */ bytes) => Math.log2(1 + bytes / 4096);

export { Overview };
