// Pointer, wheel, keyboard, buttons and the address bar's hash.

const ZOOM_STEP = 0.7;
const HELP =
    "wheel: zoom time · Alt+wheel: zoom addresses · drag: zoom to a box · Shift+drag: pan · " +
    "double click or 0: everything · click: pin · arrows, +, −, [ and ]: by keyboard";

class Control {
    constructor(root, data) {
        const find = (name) => root.querySelector(`[data-part="${name}"]`);
        this.canvas = find("canvas");
        this.selection = find("selection");
        this.tooltip = find("tooltip");
        this.details = find("details");
        this.status = find("status");
        this.find = find;
        this.model = new Model(data);
        this.groups = GROUPS.map(() => true);
        this.kinds = KINDS.map(() => true);
        const { model } = this;
        model.address.compress(model.address.usedShare < COMPRESS_BELOW);
        model.placeMarks();
        this.view = new View(model);
        this.painter = new Painter(this.canvas, model);
        this.overview = new Overview(find("overview"), this.painter, this.view, () =>
            this.redraw(),
        );
        this.readHash();
        this.buildLegend();
        this.listen();
        this.resize();
        find("help").textContent = HELP;
    }

    resize() {
        this.painter.resize();
        this.overview.resize();
        this.redrawNow();
    }

    recolor() {
        this.painter.recolor();
        this.redrawNow();
    }

    // At most once per frame, however many events there are.
    redraw() {
        this.pending ??= requestAnimationFrame(() => {
            this.pending = undefined;
            this.redrawNow();
        });
    }

    redrawNow() {
        const { count, density } = this.painter.draw(this.view);
        this.overview.draw();
        const all = formatCount(this.model.marks.count - this.model.flushMarks);
        const how = density
            ? "too many to draw one by one: a cell has the colour of the class with the most bytes, " +
              "and the stronger the more marks; zoom in to see them"
            : "area of a mark: its bytes; a number: KiB; a tail: until complete";
        this.status.textContent = `${formatCount(count)} of ${all} marks in view · ${how}`;
        this.placePinned();
        this.writeHash();
    }

    refilter() {
        this.model.filter(this.groups, this.kinds, this.find("filter").value.trim());
        this.overview.count();
        this.redraw();
    }

    buildLegend() {
        const { marks } = this.model;
        const bytes = GROUPS.map(() => 0);
        const kinds = KINDS.map(() => 0);
        for (let i = 0; i < marks.count; i++) {
            bytes[marks.group[i]] += marks.bytes[i];
            if (i === 0 || marks.request[i] !== marks.request[i - 1]) kinds[marks.kind[i]]++;
        }
        this.model.flushMarks = kinds[FLUSH];
        const legend = this.find("legend");
        for (const group of [...GROUPS.keys()].reverse()) {
            if (bytes[group] === 0) continue;
            const text = `${GROUPS[group].label} ${formatBytes(bytes[group])}`;
            legend.append(this.toggle(this.groups, group, groupIcon(group), text));
        }
        for (const kind of [WRITE, READ, DISCARD]) {
            if (kinds[kind] === 0) continue;
            const icon = groupIcon(DATABASE, kind !== WRITE);
            icon.style.color = "var(--muted)";
            const text = `${KINDS[kind]}s ${formatCount(kinds[kind])}`;
            legend.append(this.toggle(this.kinds, kind, icon, text));
        }
    }

    toggle(states, index, icon, text) {
        const label = document.createElement("label");
        const box = document.createElement("input");
        box.type = "checkbox";
        box.checked = states[index];
        box.addEventListener("change", () => {
            states[index] = box.checked;
            this.refilter();
        });
        label.append(box, icon, text);
        return label;
    }

    listen() {
        const { canvas } = this;
        canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
        canvas.addEventListener("pointerdown", (event) => this.onDown(event));
        canvas.addEventListener("pointermove", (event) => this.onMove(event));
        canvas.addEventListener("pointerup", (event) => this.onUp(event));
        canvas.addEventListener("pointerleave", () => this.hover(null));
        canvas.addEventListener("dblclick", () => this.reset());
        canvas.addEventListener("keydown", (event) => this.onKey(event));
        new ResizeObserver(() => this.resize()).observe(canvas);
        this.onButton("zoom-in", () => this.zoomMiddle(ZOOM_STEP));
        this.onButton("zoom-out", () => this.zoomMiddle(1 / ZOOM_STEP));
        this.onButton("reset", () => this.reset());
        this.onSwitch("by-order", this.model.time.byOrder, (on) => this.view.orderBy(on));
        this.onSwitch("compressed", this.model.address.compressed, (on) => this.compress(on));
        this.find("filter").addEventListener("input", () => this.refilter());
    }

    onButton(name, act) {
        this.find(name).addEventListener("click", () => {
            act();
            this.redraw();
        });
    }

    onSwitch(name, on, act) {
        const box = this.find(name);
        box.checked = on;
        box.addEventListener("change", () => {
            act(box.checked);
            this.overview.count();
            this.redraw();
        });
    }

    compress(on) {
        this.model.address.compress(on);
        this.model.placeMarks();
        this.view.setAddresses(...FULL_V);
    }

    reset() {
        this.view.reset();
        this.redraw();
    }

    zoomMiddle(factor) {
        this.view.zoomTime(factor, (this.view.u[0] + this.view.u[1]) / 2);
    }

    onWheel(event) {
        const { view, painter } = this;
        const amount = event.deltaY || event.deltaX;
        // Nothing left to zoom out of: let the page scroll.
        if (amount > 0 && view.isWhole && !event.shiftKey) return;
        event.preventDefault();
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            view.pan(amount / 800, 0);
        } else {
            const factor = Math.exp(Math.min(Math.max(amount, -200), 200) / 300);
            if (event.altKey) view.zoomAddresses(factor, painter.v(event.offsetY));
            else view.zoomTime(factor, painter.u(event.offsetX));
        }
        this.redraw();
    }

    onDown(event) {
        if (event.button !== 0) return;
        this.canvas.setPointerCapture(event.pointerId);
        this.drag = { x: event.offsetX, y: event.offsetY, pan: event.shiftKey, moved: false };
        this.drag.last = { ...this.drag };
    }

    onMove(event) {
        const { drag } = this;
        const { offsetX: x, offsetY: y } = event;
        if (!drag) return this.hover(pick(this.painter, x, y), x, y);
        if (Math.hypot(x - drag.x, y - drag.y) > 4) drag.moved = true;
        if (!drag.moved) return;
        this.hover(null);
        if (drag.pan) this.dragPan(x, y);
        else this.showSelection(x, y);
    }

    dragPan(x, y) {
        const { plot } = this.painter.layout;
        const { last } = this.drag;
        this.view.pan((last.x - x) / plot.width, (y - last.y) / plot.height);
        this.drag.last = { x, y };
        this.redraw();
    }

    // A box as high as the plot where the drag went along the time only.
    box(x, y) {
        const { drag } = this;
        const { plot } = this.painter.layout;
        const flat = Math.abs(y - drag.y) < 12;
        return {
            left: Math.min(x, drag.x),
            right: Math.max(x, drag.x),
            top: flat ? plot.y : Math.min(y, drag.y),
            bottom: flat ? plot.y + plot.height : Math.max(y, drag.y),
        };
    }

    showSelection(x, y) {
        const { left, right, top, bottom } = this.box(x, y);
        const { style } = this.selection;
        this.selection.hidden = false;
        style.left = `${left}px`;
        style.top = `${top}px`;
        style.width = `${right - left}px`;
        style.height = `${bottom - top}px`;
    }

    onUp(event) {
        const { drag, painter } = this;
        this.drag = null;
        this.selection.hidden = true;
        if (!drag) return;
        if (!drag.moved) return this.pin(pick(painter, drag.x, drag.y));
        if (drag.pan) return;
        this.drag = drag;
        const { left, right, top, bottom } = this.box(event.offsetX, event.offsetY);
        this.drag = null;
        const [from, to] = [painter.v(bottom), painter.v(top)];
        this.view.setTime(painter.u(left), painter.u(right));
        this.view.setAddresses(from, to);
        this.redraw();
    }

    onKey(event) {
        const { view } = this;
        const keys = {
            ArrowLeft: () => view.pan(-0.15, 0),
            ArrowRight: () => view.pan(0.15, 0),
            ArrowUp: () => view.pan(0, 0.15),
            ArrowDown: () => view.pan(0, -0.15),
            "+": () => this.zoomMiddle(ZOOM_STEP),
            "=": () => this.zoomMiddle(ZOOM_STEP),
            "-": () => this.zoomMiddle(1 / ZOOM_STEP),
            0: () => view.reset(),
            Home: () => view.reset(),
            "]": () => this.step(1),
            "[": () => this.step(-1),
            Escape: () => this.pin(null),
        };
        const act = keys[event.key];
        if (!act || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        act();
        this.redraw();
    }

    // Pins the next or previous mark that is shown and brings it into view.
    step(direction) {
        const { model, view } = this;
        const { marks, shown } = model;
        const start = model.firstMark[model.time.requestAt(view.u[0])];
        let mark = model.pinned?.mark ?? start - (direction > 0 ? 1 : 0);
        do mark += direction;
        while (mark >= 0 && mark < marks.count && !shown[mark]);
        if (mark < 0 || mark >= marks.count) return;
        this.pin(model.targetOfMark(mark));
        const u = model.time.ofRequest(marks.request[mark]);
        if (u < view.u[0] || u > view.u[1]) {
            view.pan((u - (view.u[0] + view.u[1]) / 2) / (view.u[1] - view.u[0]), 0);
        }
    }

    hover(target, x, y) {
        const { model, tooltip } = this;
        const before = model.hovered;
        model.hovered = target;
        tooltip.hidden = target === null;
        if (target) {
            const others =
                target.near > 1 ? `the nearest of ${formatCount(target.near)} marks here` : "";
            renderDescription(tooltip, describe(model, target), others);
            this.placeBeside(tooltip, x, y);
        }
        if (before?.mark !== target?.mark || before?.sync !== target?.sync) this.redraw();
    }

    placeBeside(box, x, y) {
        const { canvas } = this;
        const { offsetWidth: width, offsetHeight: height } = box;
        const left = x + 16 + width > canvas.clientWidth ? x - width - 16 : x + 16;
        const top = Math.min(y + 12, canvas.clientHeight - height);
        box.style.left = `${Math.max(left, 0)}px`;
        box.style.top = `${Math.max(top, 0)}px`;
    }

    pin(target) {
        this.model.pinned = target;
        if (target) renderDescription(this.details, describe(this.model, target));
        this.redraw();
    }

    // Beside what is pinned, wherever the view has that.
    placePinned() {
        const { model, painter, details } = this;
        const place = model.pinned && painter.placeOf(model.pinned);
        details.hidden = !place;
        if (place) this.placeBeside(details, place.x, place.y);
    }

    // The hash keeps the view, so that a link to the page can point at what it is about.
    readHash() {
        const { model, view } = this;
        const state = new URLSearchParams(location.hash.slice(1));
        const numbers = (name) => (state.get(name) ?? "").split("..").map(Number);
        if (state.has("order")) view.orderBy(state.get("order") === "1");
        if (state.has("compressed")) this.compress(state.get("compressed") === "1");
        const [from, to] = numbers("t");
        if (to > from) view.setTime(from, to);
        const [low, high] = numbers("a");
        if (high > low) view.setAddresses(low, high);
        const mark = Number(state.get("pin") ?? NaN) - 1;
        if (mark >= 0 && mark < model.marks.count) this.pin(model.targetOfMark(mark));
    }

    writeHash() {
        clearTimeout(this.hashTimer);
        this.hashTimer = setTimeout(() => {
            const { model, view } = this;
            const state = new URLSearchParams();
            if (model.time.byOrder) state.set("order", "1");
            if (model.address.compressed !== model.address.usedShare < COMPRESS_BELOW) {
                state.set("compressed", model.address.compressed ? "1" : "0");
            }
            if (!view.isWhole) {
                state.set("t", view.u.map((u) => u.toFixed(model.time.byOrder ? 1 : 0)).join(".."));
                if (view.v[0] > FULL_V[0] || view.v[1] < FULL_V[1])
                    state.set("a", view.v.map((v) => v.toFixed(7)).join(".."));
            }
            if (model.pinned && model.pinned.mark !== null) state.set("pin", model.pinned.mark + 1);
            history.replaceState(null, "", `#${state}`);
        }, 300);
    }
}

// Below this share of used addresses, the gaps would take nearly the whole picture.
const COMPRESS_BELOW = 0.05;
