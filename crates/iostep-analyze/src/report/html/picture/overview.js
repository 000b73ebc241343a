// The strip below the picture: all bytes over the whole time, and a brush for what is in view.

class Overview {
    constructor(canvas, painter, view, onChange) {
        Object.assign(this, { canvas, painter, view, onChange });
        this.context = canvas.getContext("2d");
        canvas.addEventListener("pointerdown", (event) => this.start(event));
        canvas.addEventListener("pointermove", (event) => this.move(event));
        canvas.addEventListener("pointerup", () => (this.drag = null));
        canvas.addEventListener("pointercancel", () => (this.drag = null));
    }

    resize() {
        const { canvas, context } = this;
        const ratio = window.devicePixelRatio || 1;
        this.width = canvas.clientWidth;
        this.height = canvas.clientHeight;
        canvas.width = Math.round(this.width * ratio);
        canvas.height = Math.round(this.height * ratio);
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        this.left = MARGIN.left;
        this.right = Math.max(this.width - MARGIN.right, this.left + 50);
        this.count();
    }

    // Bytes by column and group; a flush has none and is not seen here.
    count() {
        const { model } = this.painter;
        const { marks, shown, time } = model;
        const [from, to] = time.full;
        this.columns = Math.ceil((this.right - this.left) / 2);
        this.bytes = GROUPS.map(() => new Float64Array(this.columns));
        const scale = this.columns / (to - from);
        for (let i = 0; i < marks.count; i++) {
            if (!shown[i]) continue;
            const column = Math.floor((time.ofRequest(marks.request[i]) - from) * scale);
            this.bytes[marks.group[i]][Math.min(column, this.columns - 1)] += marks.bytes[i];
        }
        this.most = 0;
        for (let c = 0; c < this.columns; c++) this.most = Math.max(this.most, this.sum(c));
    }

    sum(column) {
        return this.bytes.reduce((sum, bytes) => sum + bytes[column], 0);
    }

    x(u) {
        const [from, to] = this.painter.model.time.full;
        return this.left + ((u - from) / (to - from)) * (this.right - this.left);
    }

    u(x) {
        const [from, to] = this.painter.model.time.full;
        return from + ((x - this.left) / (this.right - this.left)) * (to - from);
    }

    draw() {
        const { context, painter, width, height, left, right } = this;
        const { colors } = painter;
        context.clearRect(0, 0, width, height);
        for (let c = 0; c < this.columns; c++) this.drawColumn(c);
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
        context.font = '11px system-ui, "Segoe UI", sans-serif';
        context.textAlign = "right";
        context.textBaseline = "middle";
        context.fillText("all, log bytes", left - 7, height / 2);
    }

    // Logarithms, or one checkpoint would flatten everything else.
    drawColumn(column) {
        const sum = this.sum(column);
        if (sum === 0) return;
        const full = Math.max((logarithm(sum) / logarithm(this.most)) * (this.height - 4), 1);
        let y = this.height - 1;
        this.bytes.forEach((bytes, group) => {
            const part = (bytes[column] / sum) * full;
            this.context.fillStyle = this.painter.colors.groups[group];
            this.context.fillRect(this.left + column * 2, y - part, 2, part);
            y -= part;
        });
    }

    // Near an edge of the brush the edge moves, inside it the whole brush, elsewhere a new one
    // begins.
    start(event) {
        const x = event.offsetX;
        const from = this.x(this.view.u[0]);
        const to = this.x(this.view.u[1]);
        this.canvas.setPointerCapture(event.pointerId);
        if (Math.abs(x - from) < 6) this.drag = { edge: this.view.u[1] };
        else if (Math.abs(x - to) < 6) this.drag = { edge: this.view.u[0] };
        else if (x > from && x < to && !this.view.isWhole) this.drag = { last: x };
        else this.drag = { edge: this.u(x) };
    }

    move(event) {
        const { drag, view } = this;
        if (!drag) return;
        if (drag.edge !== undefined) {
            view.setTime(
                Math.min(drag.edge, this.u(event.offsetX)),
                Math.max(drag.edge, this.u(event.offsetX)),
            );
        } else {
            const move = this.u(event.offsetX) - this.u(drag.last);
            view.pan(move / (view.u[1] - view.u[0]), 0);
            drag.last = event.offsetX;
        }
        this.onChange();
    }
}

// Bytes in blocks, so that a single one is seen and small.
const logarithm = (bytes) => Math.log2(1 + bytes / 4096);
