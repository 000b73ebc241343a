// Pointer, wheel, keyboard, buttons and the address bar's hash.

import { describe, groupIcon, renderDescription } from "./describe.js";
import { find } from "./dom.js";
import { formatBytes, formatCount } from "./format.js";
import { DATABASE, DISCARD, FLUSH, GROUPS, KINDS, READ, WRITE } from "./marks.js";
import { Model } from "./model.js";
import { Overview } from "./overview.js";
import { Painter } from "./paint.js";
import { pick } from "./pick.js";
import { FULL_V, View } from "./view.js";

const ZOOM_STEP = 0.7;
const HELP =
    "wheel: zoom time · Alt+wheel: zoom addresses · drag: zoom to a box · Shift+drag: pan · " +
    "double click or 0: everything · click: pin · arrows, +, −, [ and ]: by keyboard";

class Control {
    /** @param {HTMLElement} root @param {Data} data */
    constructor(root, data) {
        this.root = root;
        this.canvas = this.part("canvas", HTMLCanvasElement);
        this.selection = this.part("selection", HTMLElement);
        this.tooltip = this.part("tooltip", HTMLElement);
        this.details = this.part("details", HTMLElement);
        this.status = this.part("status", HTMLElement);
        this.search = this.part("filter", HTMLInputElement);
        this.model = new Model(data);
        this.totals = this.model.totals();
        this.groups = GROUPS.map(() => true);
        this.kinds = KINDS.map(() => true);
        /** @type {Drag | null} */
        this.drag = null;
        /** @type {number | undefined} */
        this.pending = undefined;
        this.hashTimer = 0;
        this.view = new View(this.model.time);
        this.painter = new Painter(this.canvas, this.model, this.view);
        const overview = this.part("overview", HTMLCanvasElement);
        this.overview = new Overview(overview, this.painter, () => this.redraw());
        this.readHash();
        this.buildLegend();
        this.listen();
        this.resize();
        this.part("help", HTMLElement).textContent = HELP;
    }

    /** @type {<E extends Element>(name: string, kind: new () => E) => E} */
    part(name, kind) {
        return find(this.root, `[data-part="${name}"]`, kind);
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
        const { count, density } = this.painter.draw();
        this.overview.draw();
        const all = formatCount(this.model.marks.count - this.totals.requests[FLUSH]);
        const how = density
            ? "too many to draw one by one: a cell has the colour of the class with the most bytes, " +
              "and the stronger the more marks; zoom in to see them"
            : "area of a mark: its bytes; a number: KiB; a tail: until complete";
        this.status.textContent = `${formatCount(count)} of ${all} marks in view · ${how}`;
        this.placePinned();
        this.writeHash();
    }

    refilter() {
        this.model.filter(this.groups, this.kinds, this.search.value.trim());
        this.overview.count();
        this.redraw();
    }

    buildLegend() {
        const { bytes, requests } = this.totals;
        const legend = this.part("legend", HTMLElement);
        for (const group of [...GROUPS.keys()].reverse()) {
            if (bytes[group] === 0) continue;
            const text = `${GROUPS[group].label} ${formatBytes(bytes[group])}`;
            legend.append(this.toggle(this.groups, group, groupIcon(group), text));
        }
        for (const kind of [WRITE, READ, DISCARD]) {
            if (requests[kind] === 0) continue;
            const icon = groupIcon(DATABASE, kind !== WRITE);
            icon.style.color = "var(--muted)";
            const text = `${KINDS[kind]}s ${formatCount(requests[kind])}`;
            legend.append(this.toggle(this.kinds, kind, icon, text));
        }
    }

    /** @type {(states: boolean[], index: number, icon: Element, text: string) => Element} */
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
        this.search.addEventListener("input", () => this.refilter());
    }

    /** @type {(name: string, act: () => void) => void} */
    onButton(name, act) {
        this.part(name, HTMLButtonElement).addEventListener("click", () => {
            act();
            this.redraw();
        });
    }

    /** @type {(name: string, on: boolean, act: (on: boolean) => void) => void} */
    onSwitch(name, on, act) {
        const box = this.part(name, HTMLInputElement);
        box.checked = on;
        box.addEventListener("change", () => {
            act(box.checked);
            this.overview.count();
            this.redraw();
        });
    }

    compress(/** @type {boolean} */ on) {
        this.model.compress(on);
        this.view.setAddresses(...FULL_V);
    }

    reset() {
        this.view.reset();
        this.redraw();
    }

    zoomMiddle(/** @type {number} */ factor) {
        this.view.zoomTime(factor, (this.view.u[0] + this.view.u[1]) / 2);
    }

    onWheel(/** @type {WheelEvent} */ event) {
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

    onDown(/** @type {PointerEvent} */ event) {
        if (event.button !== 0) return;
        this.canvas.setPointerCapture(event.pointerId);
        const { offsetX: x, offsetY: y, shiftKey: pan } = event;
        this.drag = { x, y, pan, moved: false, last: { x, y } };
    }

    onMove(/** @type {PointerEvent} */ event) {
        const { drag } = this;
        const { offsetX: x, offsetY: y } = event;
        if (!drag) return this.hover(pick(this.painter, x, y), x, y);
        if (Math.hypot(x - drag.x, y - drag.y) > 4) drag.moved = true;
        if (!drag.moved) return;
        this.hover(null);
        if (drag.pan) this.dragPan(drag, x, y);
        else this.showSelection(drag, x, y);
    }

    /** @type {(drag: Drag, x: number, y: number) => void} */
    dragPan(drag, x, y) {
        const { plot } = this.painter.layout;
        this.view.pan((drag.last.x - x) / plot.width, (y - drag.last.y) / plot.height);
        drag.last = { x, y };
        this.redraw();
    }

    // A box as high as the plot where the drag went along the time only.
    /** @param {Drag} drag @param {number} x @param {number} y */
    box(drag, x, y) {
        const { plot } = this.painter.layout;
        const flat = Math.abs(y - drag.y) < 12;
        return {
            left: Math.min(x, drag.x),
            right: Math.max(x, drag.x),
            top: flat ? plot.y : Math.min(y, drag.y),
            bottom: flat ? plot.y + plot.height : Math.max(y, drag.y),
        };
    }

    /** @type {(drag: Drag, x: number, y: number) => void} */
    showSelection(drag, x, y) {
        const { left, right, top, bottom } = this.box(drag, x, y);
        const { style } = this.selection;
        this.selection.hidden = false;
        style.left = `${left}px`;
        style.top = `${top}px`;
        style.width = `${right - left}px`;
        style.height = `${bottom - top}px`;
    }

    onUp(/** @type {PointerEvent} */ event) {
        const { drag, painter } = this;
        this.drag = null;
        this.selection.hidden = true;
        if (!drag) return;
        if (!drag.moved) return this.pin(pick(painter, drag.x, drag.y));
        if (drag.pan) return;
        const { left, right, top, bottom } = this.box(drag, event.offsetX, event.offsetY);
        const [from, to] = [painter.v(bottom), painter.v(top)];
        this.view.setTime(painter.u(left), painter.u(right));
        this.view.setAddresses(from, to);
        this.redraw();
    }

    onKey(/** @type {KeyboardEvent} */ event) {
        const { view } = this;
        /** @type {Record<string, () => void>} */
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
    step(/** @type {1 | -1} */ direction) {
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

    /** @type {(target: Target | null, x?: number, y?: number) => void} */
    hover(target, x = 0, y = 0) {
        const { model, tooltip } = this;
        const before = model.hovered;
        model.hovered = target;
        tooltip.hidden = target === null;
        if (target) {
            const { near = 1 } = target;
            const others = near > 1 ? `the nearest of ${formatCount(near)} marks here` : "";
            renderDescription(tooltip, describe(model, target), others);
            this.placeBeside(tooltip, x, y);
        }
        if (before?.mark !== target?.mark || before?.sync !== target?.sync) this.redraw();
    }

    /** @type {(box: HTMLElement, x: number, y: number) => void} */
    placeBeside(box, x, y) {
        const { canvas } = this;
        const { offsetWidth: width, offsetHeight: height } = box;
        const left = x + 16 + width > canvas.clientWidth ? x - width - 16 : x + 16;
        const top = Math.min(y + 12, canvas.clientHeight - height);
        box.style.left = `${Math.max(left, 0)}px`;
        box.style.top = `${Math.max(top, 0)}px`;
    }

    pin(/** @type {Target | null} */ target) {
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
        const numbers = (/** @type {string} */ name) => state.get(name)?.split("..").map(Number) ?? [];
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
            const { compressed } = model.address;
            if (compressed !== model.startsCompressed) {
                state.set("compressed", compressed ? "1" : "0");
            }
            if (!view.isWhole) {
                state.set("t", view.u.map((u) => u.toFixed(model.time.byOrder ? 1 : 0)).join(".."));
                const isPart = view.v[0] > FULL_V[0] || view.v[1] < FULL_V[1];
                if (isPart) state.set("a", view.v.map((v) => v.toFixed(7)).join(".."));
            }
            const mark = model.pinned?.mark ?? null;
            if (mark !== null) state.set("pin", `${mark + 1}`);
            history.replaceState(null, "", `#${state}`);
        }, 300);
    }
}

export { Control };
