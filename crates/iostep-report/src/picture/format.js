// Numbers as text.

const formatCount = (/** @type {number} */ n) => Math.round(n).toLocaleString("en-US");

function formatBytes(/** @type {number} */ bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (bytes >= 1024 && unit + 1 < units.length) {
        bytes /= 1024;
        unit++;
    }
    return `${bytes >= 100 ? Math.round(bytes) : +bytes.toPrecision(3)} ${units[unit]}`;
}

// The short form of the marks' labels: KiB without saying so, as in the papers' figures.
function formatKib(/** @type {number} */ bytes) {
    const kib = bytes / 1024;
    return kib >= 10 ? String(Math.round(kib)) : String(+kib.toFixed(1));
}

/** @type {[number, string][]} */
const TIME_UNITS = [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
    [1, "ns"],
];

function formatDuration(/** @type {number} */ ns) {
    const [size, unit] = TIME_UNITS.find(([least]) => Math.abs(ns) >= least) ?? [1, "ns"];
    return `${+(ns / size).toPrecision(4)} ${unit}`;
}

// A point in time, with as many digits as the distance of ticks calls for.
/** @type {(ns: number, step: number) => string} */
function formatTick(ns, step) {
    const [size, unit] = Math.abs(ns) >= 1e9 || step >= 1e9 ? TIME_UNITS[0] : TIME_UNITS[1];
    const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
    return `${(ns / size).toFixed(Math.min(digits, 9))} ${unit}`;
}

/** @type {[number, string][]} */
const ADDRESS_UNITS = [
    [2 ** 31, "TiB"],
    [2 ** 21, "GiB"],
    [2 ** 11, "MiB"],
];

// An address in the greatest unit that shows it in full with three digits after the point.
function formatAddress(/** @type {number} */ sector) {
    if (sector === 0) return "0";
    const [size, unit] = ADDRESS_UNITS.find(
        ([sectors]) => sector >= sectors && (sector * 1000) % sectors === 0,
    ) ?? [2, "KiB"];
    return `${(sector / size).toLocaleString("en-US", { maximumFractionDigits: 3 })} ${unit}`;
}

export { formatAddress, formatBytes, formatCount, formatDuration, formatKib, formatTick };
