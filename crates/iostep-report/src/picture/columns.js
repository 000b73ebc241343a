// Reads what columns.rs packed: byte planes, one column after the other, in one DEFLATE stream.

import { find } from "./dom.js";

async function inflate(/** @type {string} */ base64) {
    const binary = atob(base64);
    const packed = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) packed[i] = binary.charCodeAt(i);
    // @ts-ignore: TypeScript 4.8, which Debian 12 has, does not know it.
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The narrowest array that holds the column; times and addresses may need more than 32 bits.
function arrayFor(/** @type {PackedColumn} */ { rows, width, delta }) {
    if (delta || width > 4) return new Float64Array(rows);
    if (width > 2) return new Uint32Array(rows);
    return width === 2 ? new Uint16Array(rows) : new Uint8Array(rows);
}

/** @type {(column: PackedColumn, raw: Uint8Array, start: number) => Column} */
function unpackColumn(column, raw, start) {
    const values = arrayFor(column);
    const { rows, width, delta } = column;
    for (let plane = 0, weight = 1; plane < width; plane++, weight *= 256) {
        const from = start + plane * rows;
        for (let i = 0; i < rows; i++) values[i] += raw[from + i] * weight;
    }
    if (delta) for (let i = 1; i < rows; i++) values[i] += values[i - 1];
    return values;
}

// Puts `request.issue_ns` and its like where `data.request.issue_ns` is.
/** @type {(data: any, raw: Uint8Array) => Data} */
function unpack(data, raw) {
    let start = 0;
    for (const column of data.columns) {
        const [table, name] = column.name.split(".");
        data[table] ??= {};
        data[table][name] = unpackColumn(column, raw, start);
        start += column.rows * column.width;
    }
    return data;
}

// Everything the page knows.
async function readData() {
    const data = find(document, "#picture-data", HTMLScriptElement).text;
    const packed = find(document, "#columns", HTMLScriptElement);
    packed.remove();
    return unpack(JSON.parse(data), await inflate(packed.text));
}

// Index of the first value that is not below `value`; `values` ascends.
/** @type {(values: ArrayLike<number>, value: number) => number} */
function lowerBound(values, value) {
    let low = 0;
    let high = values.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (values[middle] < value) low = middle + 1;
        else high = middle;
    }
    return low;
}

export { lowerBound, readData, unpack };
