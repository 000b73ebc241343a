// Looks at the pages of a server with Chromium, over a pipe of the DevTools protocol, and says what
// is wrong with them: node pages.js BROWSER URL HOSTILE-DEVICE [DIRECTORY FOR SCREENSHOTS]

const { spawn } = require("node:child_process");
const { mkdtempSync, mkdirSync, rmSync, writeFileSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");

const [browser, base, hostile, screenshots] = process.argv.slice(2);
const TEST = "sqlite,journal=wal";
const WIDTHS = [1280, 390];
const SCHEMES = ["light", "dark"];
// A loaded machine takes its time.
const PATIENCE_MS = 60_000;
const faults = [];

// A connection to a browser: commands, and what it tells by itself.
class Browser {
    constructor(program) {
        this.home = mkdtempSync(join(tmpdir(), "iostep-pages-"));
        const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"];
        this.process = spawn(program, [...flags, `--user-data-dir=${this.home}`, "about:blank"], {
            stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
        });
        this.waiting = new Map();
        this.listeners = [];
        this.last = 0;
        let rest = "";
        this.process.stdio[4].setEncoding("utf8").on("data", (text) => {
            const messages = (rest + text).split("\0");
            rest = messages.pop();
            messages.forEach((message) => this.take(JSON.parse(message)));
        });
    }

    take(message) {
        const waiting = this.waiting.get(message.id);
        if (waiting === undefined) {
            this.listeners.forEach((listener) => listener(message));
            return;
        }
        this.waiting.delete(message.id);
        if (message.error) waiting.reject(new Error(JSON.stringify(message.error)));
        else waiting.resolve(message.result);
    }

    send(method, params = {}) {
        const id = (this.last += 1);
        const message = { id, method, params, sessionId: this.session };
        this.process.stdio[3].write(JSON.stringify(message) + "\0");
        const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
        return inTime(answer, `${method} ${params.expression ?? ""}`);
    }

    event(method) {
        const told = new Promise((resolve) => {
            const listener = (message) => {
                if (message.method !== method) return;
                this.listeners = this.listeners.filter((each) => each !== listener);
                resolve(message.params);
            };
            this.listeners.push(listener);
        });
        return inTime(told, method);
    }

    async attach() {
        const { targetInfos } = await this.send("Target.getTargets");
        const { targetId } = targetInfos.find((target) => target.type === "page");
        const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
        this.session = sessionId;
        for (const domain of ["Page", "Runtime", "Log", "Accessibility"]) {
            await this.send(`${domain}.enable`);
        }
    }

    async open(path) {
        const loaded = this.event("Page.loadEventFired");
        await this.send("Page.navigate", { url: base + path });
        await loaded;
    }

    async evaluate(code) {
        const params = { expression: code, returnByValue: true, awaitPromise: true };
        const { result, exceptionDetails } = await this.send("Runtime.evaluate", params);
        if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
        return result.value;
    }

    async end() {
        const ended = new Promise((resolve) => this.process.on("exit", resolve));
        this.process.kill();
        await ended;
        rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
    }
}

// A browser that does not answer is a fault, and not a test without an end.
function inTime(promise, what) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no answer to ${what}`)), PATIENCE_MS);
    });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function check(holds, place, fault) {
    if (!holds) faults.push(`${place}: ${fault}`);
}

async function json(path) {
    const answer = await fetch(base + path, { headers: { connection: "close" } });
    return inTime(answer.json(), path);
}

// What stands out of the page's width, where there is something.
const OVERFLOW = `(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const all = [...document.querySelectorAll("body *")];
    const wide = all.filter((each) => each.getBoundingClientRect().right > width + 1
        && !each.closest(".scroll"));
    return ["the page is wider than the window", ...wide.slice(0, 3).map((each) => each.outerHTML.slice(0, 120))];
})()`;

// The least contrast of a text with what is behind it, by WCAG 2.2.
const CONTRAST = `(() => {
    const parse = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = (text) => {
        const [r, g, b] = parse(text).map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (each) => {
        for (; each; each = each.parentElement) {
            const colour = getComputedStyle(each).backgroundColor;
            if (parse(colour)[3] !== 0) return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const texts = [...document.querySelectorAll("body *")].filter((each) =>
        [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) && each.checkVisibility());
    let least = [99, ""];
    for (const each of texts) {
        const style = getComputedStyle(each);
        const colour = each.namespaceURI.endsWith("svg") ? style.fill : style.color;
        const [a, b] = [light(colour), light(behind(each))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < least[0]) least = [ratio, each.outerHTML.slice(0, 100)];
    }
    return least;
})()`;

const CONTROLS = `[...document.querySelectorAll("a[href], button, input, select, summary")]
    .filter((each) => each.checkVisibility() && each.type !== "hidden")`;

// Presses Tab until everything had the focus, or nothing new gets it.
async function reach(page, place) {
    const all = await page.evaluate(`(window.reached = new Set(), ${CONTROLS}.length)`);
    const key = { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 };
    for (let pressed = 0; pressed < 2 * all + 20; pressed += 1) {
        await page.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...key });
        await page.send("Input.dispatchKeyEvent", { type: "keyUp", ...key });
        const missing = await page.evaluate(
            `(reached.add(document.activeElement), ${CONTROLS}.filter((each) => !reached.has(each)).length)`,
        );
        if (missing === 0) return all;
    }
    const missing = await page.evaluate(
        `${CONTROLS}.filter((each) => !reached.has(each)).map((each) => each.outerHTML.slice(0, 120)).slice(0, 5)`,
    );
    check(false, place, `Tab does not reach ${missing.join(" ")}`);
    return all;
}

const NAMED = new Set(["button", "link", "textbox", "searchbox", "combobox", "checkbox", "image", "DisclosureTriangle"]);

async function names(page, place) {
    const { nodes } = await page.send("Accessibility.getFullAXTree");
    const shown = nodes.filter((node) => !node.ignored && NAMED.has(node.role.value));
    for (const node of shown) {
        check(node.name?.value?.trim(), place, `${node.role.value} without a name`);
    }
    return shown.length;
}

// The numbers of a page's tables as they stand in it, row by row.
async function rowsOf(page, path) {
    await page.open(path);
    return page.evaluate(
        `[...document.querySelectorAll("tbody tr")].map((row) =>
            [...row.querySelectorAll("[data-value]")].map((cell) => Number(cell.dataset.value)))`,
    );
}

const figuresOf = (place) =>
    ["best", "median", "worst", "installations", "results"].map((name) => place[name]);

async function hasRows(page, path, places) {
    const rows = (await rowsOf(page, path)).map((row) => JSON.stringify(row));
    for (const place of places) {
        const figures = JSON.stringify(figuresOf(place));
        check(rows.includes(figures), path, `no row has ${figures}`);
    }
    return places.length;
}

async function hasSummary(page, id) {
    const { summary } = await json(`/api/v1/results/${id}`);
    const path = `/result/${id}`;
    const values = new Set((await rowsOf(page, path)).flat());
    for (const { measure, median } of summary.estimates) {
        check(values.has(median), path, `${measure} of ${median} is not there`);
    }
    return summary.estimates.length;
}

async function figures(page, path, answer) {
    const rows = await rowsOf(page, path);
    const expected = answer.places.map((place) => [
        place.rank ?? answer.least_installations - place.installations,
        ...figuresOf(place),
    ]);
    check(JSON.stringify(rows) === JSON.stringify(expected), path, "other figures than the API's");
    return rows.length;
}

async function main() {
    const page = new Browser(browser);
    const counts = { pages: 0, controls: 0, named: 0, rows: 0 };
    let place = "";
    process.on("unhandledRejection", (error) => {
        console.log([...faults, `${place}: ${error.message}`].join("\n"));
        page.process.kill();
        process.exit(1);
    });
    page.listeners.push(({ method, params }) => {
        const entry = params?.entry;
        if (method === "Runtime.exceptionThrown") faults.push(`${place}: ${JSON.stringify(params.exceptionDetails)}`);
        if (method === "Runtime.consoleAPICalled" && params.type === "error") faults.push(`${place}: console`);
        if (method === "Log.entryAdded" && entry.level !== "info" && entry.level !== "verbose") {
            faults.push(`${place}: ${entry.text}`);
        }
        if (method === "Page.javascriptDialogOpening") faults.push(`${place}: a dialog: ${params.message}`);
    });
    await page.attach();
    const ranking = await json(`/api/v1/ranking?test=${TEST}`);
    const key = ({ vendor, model, part, capacity_bytes }) =>
        encodeURIComponent([vendor, model, part, capacity_bytes].join("~"));
    const plain = ranking.places.filter((each) => !each.part.includes("<"));
    const devices = plain.slice(0, 4).map(key);
    const [valid, invalid] = await Promise.all(
        ["valid", "invalid"].map((state) => json(`/api/v1/results?state=${state}&test=${TEST}&limit=9`)),
    );
    const looks = {
        ranking: `/?test=${TEST}`,
        device: `/device/${devices[0]}?test=${TEST}`,
        compare: `/compare?${devices.map((each) => `device=${each}`).join("&")}`,
        result: `/result/${valid.results.at(-1).id}`,
        invalid: `/result/${invalid.results.at(-1).id}`,
        search: "/search?q=a",
        methodology: "/methodology",
        hostile: `/device/${hostile}`,
        "hostile-compare": `/compare?device=${hostile}&device=${devices[0]}`,
    };
    if (screenshots) mkdirSync(screenshots, { recursive: true });
    for (const width of WIDTHS) {
        for (const scheme of SCHEMES) {
            const metrics = { width, height: 900, deviceScaleFactor: 1, mobile: false };
            await page.send("Emulation.setDeviceMetricsOverride", metrics);
            const features = [{ name: "prefers-color-scheme", value: scheme }];
            await page.send("Emulation.setEmulatedMedia", { features });
            for (const [name, path] of Object.entries(looks)) {
                place = `${name} at ${width}, ${scheme}`;
                await page.open(path);
                counts.pages += 1;
                const overflow = await page.evaluate(OVERFLOW);
                overflow.forEach((fault) => check(false, place, fault));
                const [contrast, text] = await page.evaluate(CONTRAST);
                check(contrast >= 4.5, place, `contrast of ${contrast.toFixed(2)}: ${text}`);
                const paper = await page.evaluate("getComputedStyle(document.body).backgroundColor");
                const isDark = Number(paper.match(/\d+/)[0]) < 128;
                check(isDark === (scheme === "dark"), place, `its paper is ${paper}`);
                if (scheme === "light") {
                    counts.named += await names(page, place);
                    counts.controls += await reach(page, place);
                }
                if (screenshots) {
                    const { data } = await page.send("Page.captureScreenshot", { captureBeyondViewport: true });
                    writeFileSync(join(screenshots, `${name}-${width}-${scheme}.png`), data, "base64");
                }
            }
        }
    }
    place = "without script, at 390";
    await page.send("Emulation.setScriptExecutionDisabled", { value: true });
    for (const path of Object.values(looks)) {
        await page.open(path);
        const { cssContentSize } = await page.send("Page.getLayoutMetrics");
        check(cssContentSize.width <= 390, `${place}: ${path}`, `${cssContentSize.width} wide`);
    }
    await page.send("Emulation.setScriptExecutionDisabled", { value: false });
    for (const query of [`test=${TEST}`, `test=${TEST}&measure=transaction_p99_ns&filesystem=f2fs`]) {
        place = query;
        counts.rows += await figures(page, `/?${query}`, await json(`/api/v1/ranking?${query}`));
    }
    place = "figures";
    for (const each of plain.slice(0, 4)) {
        counts.rows += await hasRows(page, `/device/${key(each)}?test=${TEST}`, [each]);
    }
    counts.rows += await hasRows(page, `${looks.compare}&test=${TEST}`, plain.slice(0, 4));
    counts.rows += await hasSummary(page, valid.results.at(-1).id);
    // What a reader does: two boxes, and the button.
    place = "choosing";
    await page.open(looks.ranking);
    const loaded = page.event("Page.loadEventFired");
    await page.evaluate(
        `[...document.querySelectorAll("input[type=checkbox]")].slice(0, 2).forEach((each) => each.click()),
        document.querySelector("#compare button").click()`,
    );
    await loaded;
    check((await page.evaluate("document.title")).startsWith("Comparison"), place, "no comparison");
    // A click on a head sorts.
    place = "sorting";
    await page.open(looks.ranking);
    const sorted = await page.evaluate(
        `[...document.querySelectorAll("table")[0].querySelectorAll("th button")]
            .find((each) => each.textContent === "installations").click(),
        [...document.querySelectorAll("table")[0].tBodies[0].rows].map((row) =>
            Number(row.querySelectorAll("[data-value]")[4].dataset.value))`,
    );
    check(sorted.every((count, at) => at === 0 || sorted[at - 1] >= count), place, `${sorted}`);
    await page.end();
    console.log(Object.entries(counts).map(([name, count]) => `${name} ${count}`).join(", "));
    faults.forEach((fault) => console.log(fault));
    // Chromium's helpers hold the pipes' other ends a while, and node would wait for them.
    process.exit(faults.length > 0 ? 1 : 0);
}

main();
