// The rest of the picture: what is not a mark.

Object.assign(Painter.prototype, {
    regions() {
        const { layout, model } = this;
        const { plot } = layout;
        return model.data.journal.map(([first, count]) => {
            const top = Math.max(this.y(model.address.of(first + count)), plot.y);
            const bottom = Math.min(this.y(model.address.of(first)), plot.y + plot.height);
            return { top, height: bottom - top };
        });
    },

    drawRegions() {
        const { context, colors, layout } = this;
        context.fillStyle = colors.region;
        for (const { top, height } of this.regions()) {
            if (height > 0) context.fillRect(layout.plot.x, top, layout.plot.width, height);
        }
    },

    // After the marks, on a ground of their own, to be read over dense ones.
    drawRegionNames() {
        const { context, colors, layout, model } = this;
        const name = model.data.journal_observed ? "journal (as observed)" : "filesystem journal";
        const width = context.measureText(name).width;
        const left = layout.plot.x + 24;
        context.textBaseline = "middle";
        context.textAlign = "left";
        for (const { top, height } of this.regions()) {
            if (height < 18) continue;
            context.fillStyle = colors.region;
            context.globalAlpha = 0.8;
            context.fillRect(left - 4, top + 2, width + 8, 15);
            context.globalAlpha = 1;
            context.fillStyle = colors.muted;
            context.fillText(name, left, top + 10);
        }
    },

    drawAddressAxis() {
        const { context, colors, layout, model } = this;
        const { plot } = layout;
        context.textAlign = "right";
        context.textBaseline = "middle";
        let lastY = Infinity;
        for (const piece of model.address.pieces) {
            const bottom = Math.min(this.y(piece.low), plot.y + plot.height);
            const top = Math.max(this.y(piece.high), plot.y);
            if (bottom <= top) continue;
            const from = model.address.sectorAt(Math.max(piece.low, this.v(bottom)) + 1e-12);
            const to = model.address.sectorAt(Math.min(piece.high, this.v(top)) - 1e-12);
            for (const [sector, text] of addressTicks(from, to, (bottom - top) / 34)) {
                const y = this.y(model.address.of(sector));
                if (lastY - y < 13 || y > plot.y + plot.height) continue;
                lastY = y;
                this.drawGridLine(plot.x - 4, y, plot.x + plot.width, y);
                context.fillStyle = colors.muted;
                context.fillText(text, plot.x - 7, y);
            }
            if (piece.low > 0) this.drawBreak(this.y(piece.low));
        }
        context.textAlign = "left";
        context.fillStyle = colors.text;
        context.fillText("LBA", 4, plot.y - 9);
    },

    // Where addresses were left out.
    drawBreak(y) {
        const { context, colors, layout } = this;
        const { plot } = layout;
        if (y < plot.y || y > plot.y + plot.height) return;
        context.save();
        context.strokeStyle = colors.muted;
        context.setLineDash([1, 4]);
        context.beginPath();
        context.moveTo(plot.x, y);
        context.lineTo(plot.x + plot.width, y);
        context.stroke();
        context.setLineDash([]);
        context.beginPath();
        context.moveTo(plot.x - 5, y + 4);
        context.lineTo(plot.x + 5, y);
        context.moveTo(plot.x - 5, y);
        context.lineTo(plot.x + 5, y - 4);
        context.stroke();
        context.restore();
    },

    drawGridLine(x1, y1, x2, y2) {
        const { context, colors } = this;
        context.strokeStyle = colors.line;
        context.lineWidth = 1;
        context.beginPath();
        context.moveTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
        context.lineTo(Math.round(x2) + 0.5, Math.round(y2) + 0.5);
        context.stroke();
    },

    drawTimeAxis() {
        const { context, colors, layout, model } = this;
        const { plot } = layout;
        context.textBaseline = "alphabetic";
        context.textAlign = "center";
        let lastEnd = -Infinity;
        for (const [u, text] of model.time.ticks(this.view.u, plot.width / 95)) {
            const x = this.x(u);
            this.drawGridLine(x, plot.y, x, plot.y + plot.height);
            const half = context.measureText(text).width / 2;
            const at = Math.min(Math.max(x, half), layout.width - half);
            if (at - half < lastEnd + 8) continue;
            lastEnd = at + half;
            context.fillStyle = colors.muted;
            context.fillText(text, at, layout.height - 6);
        }
    },

    drawMarkers() {
        const { context, colors, layout, model } = this;
        const { plot } = layout;
        context.textBaseline = "alphabetic";
        context.textAlign = "left";
        let lastEnd = plot.x + 26;
        for (const { time_ns, name } of model.data.markers) {
            const x = this.x(model.time.ofTime(time_ns));
            if (x < plot.x || x > plot.x + plot.width) continue;
            context.save();
            context.strokeStyle = colors.muted;
            context.setLineDash([4, 3]);
            context.beginPath();
            context.moveTo(Math.round(x) + 0.5, plot.y - 4);
            context.lineTo(Math.round(x) + 0.5, layout.height - LANE.axis);
            context.stroke();
            context.restore();
            const width = context.measureText(name).width;
            const at = Math.min(x - 2, plot.x + plot.width - width);
            if (at < lastEnd + 8) continue;
            lastEnd = at + width;
            context.fillStyle = colors.text;
            context.fillText(name, at, plot.y - 7);
        }
    },

    drawLanes() {
        const { context, colors, layout } = this;
        context.textBaseline = "middle";
        context.textAlign = "right";
        for (const lane of Object.values(layout.lanes)) {
            context.fillStyle = colors.muted;
            context.fillText(lane.name, layout.plot.x - 7, lane.y + lane.height / 2);
        }
        this.clipped(() => {
            this.drawBarriers();
            this.drawSpans(this.model.syncs, layout.lanes["sync calls"], (i) =>
                this.model.syncNames(i),
            );
            if (layout.lanes.commits)
                this.drawSpans(this.model.commits, layout.lanes.commits, null);
        }, true);
    },

    // A stroke for each flush and a diamond for each FUA write; where they are dense, strokes in
    // two rows. One per pixel is enough.
    drawBarriers() {
        const { context, colors, model, layout } = this;
        const lane = layout.lanes["flush, FUA"];
        const flushes = this.placesOf(model.barriers.flushes);
        const durable = this.placesOf(model.barriers.durable);
        const dense = flushes.length + durable.length > layout.plot.width / 8;
        const height = dense ? lane.height / 2 : lane.height;
        context.fillStyle = colors.text;
        for (const x of flushes) context.fillRect(x - 0.6, lane.y, 1.2, height);
        context.fillStyle = colors.groups[JOURNAL];
        const path = new Path2D();
        for (const x of durable) {
            if (dense) path.rect(x - 0.6, lane.y + height, 1.2, height);
            else SHAPES.diamond(path, x, lane.y + height / 2, 3.2);
        }
        context.fill(path);
    },

    placesOf(requests) {
        const { time } = this.model;
        const places = [];
        let last = -Infinity;
        const end = lowerBound(requests, time.requestAt(this.view.u[1]));
        for (let k = lowerBound(requests, time.requestAt(this.view.u[0])); k < end; k++) {
            const x = this.x(time.ofRequest(requests[k]));
            if (x - last < 1) continue;
            last = x;
            places.push(x);
        }
        return places;
    },

    // Spans of a lane; those of less than a pixel are drawn once per pixel and track.
    drawSpans(spans, lane, nameOf) {
        const { context, colors, model } = this;
        const height = lane.height / spans.tracks;
        const right = this.layout.plot.x + this.layout.plot.width;
        const last = new Array(spans.tracks).fill(-Infinity);
        const chosen = [model.pinned, model.hovered].map((target) => model.spanOf(target, spans));
        const from = lowerBound(spans.latest, model.time.timeAt(this.view.u[0]));
        for (let i = from; i < spans.count; i++) {
            const x = this.x(model.time.ofTime(spans.start[i]));
            if (x > right) break;
            const end = this.x(model.time.ofTime(spans.end[i]));
            const track = spans.track[i];
            const isChosen = chosen.includes(i);
            if (!isChosen && (end < this.layout.plot.x || end < last[track] + 1)) continue;
            last[track] = end;
            const y = lane.y + track * height;
            context.fillStyle = isChosen ? colors.accent : colors.span;
            context.fillRect(x, y + 0.5, Math.max(end - x, 1), height - 1);
            if (nameOf && end - x > 24) {
                context.fillStyle = isChosen ? colors.paper : colors.text;
                this.drawSpanName(nameOf(i), x, end, y + height / 2);
            }
        }
    },

    // As much of a span's name as it has room for: kind and file, the file, or its beginning.
    drawSpanName(names, x, end, y) {
        const { context, layout } = this;
        const from = Math.max(x, layout.plot.x) + 3;
        const width = Math.min(end, layout.plot.x + layout.plot.width) - from - 2;
        context.save();
        context.font = '9.5px system-ui, "Segoe UI", sans-serif';
        context.textAlign = "left";
        const whole = names.find((name) => context.measureText(name).width <= width);
        context.fillText(whole ?? shorten(context, names[names.length - 1], width), from, y + 0.5);
        context.restore();
    },
});

function shorten(context, text, width) {
    let length = Math.min(text.length, Math.floor(width / 3));
    while (length > 0 && context.measureText(`${text.slice(0, length)}…`).width > width) length--;
    return length > 2 ? `${text.slice(0, length)}…` : "";
}
