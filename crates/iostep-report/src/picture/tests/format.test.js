import { strict as assert } from "node:assert";
import { test } from "node:test";
import { formatAddress, formatBytes, formatDuration, formatKib, formatTick } from "../format.js";

test("bytes have the greatest unit that keeps three digits", () => {
    const texts = [0, 1023, 1024, 4608, 12_636, 102_400, 1_600_000, 2 ** 50].map(formatBytes);
    const expected = ["0 B", "1023 B", "1 KiB", "4.5 KiB", "12.3 KiB", "100 KiB", "1.53 MiB", "1024 TiB"];
    assert.deepEqual(texts, expected);
});

test("labels of marks are KiB without saying so", () => {
    assert.deepEqual([512, 4096, 10_240, 1_048_576].map(formatKib), ["0.5", "4", "10", "1024"]);
});

test("durations have four digits and a unit that fits", () => {
    const texts = [0, 999, 1500, 1_234_567, 2.5e9].map(formatDuration);
    assert.deepEqual(texts, ["0 ns", "999 ns", "1.5 µs", "1.235 ms", "2.5 s"]);
});

test("ticks tell neighbours apart", () => {
    assert.equal(formatTick(1_500_000, 1e5), "1.5 ms");
    assert.equal(formatTick(1_501_000, 1e3), "1.501 ms");
    assert.equal(formatTick(2.5e9, 5e8), "2.5 s");
    assert.equal(formatTick(5e8, 1e9), "1 s");
});

test("addresses have the greatest unit that shows them in full", () => {
    const texts = [0, 1, 2, 2048, 3072, 2 ** 21, 2 ** 31, 2049].map(formatAddress);
    assert.deepEqual(texts, [
        "0", "0.5 KiB", "1 KiB", "1 MiB", "1.5 MiB", "1 GiB", "1 TiB", "1,024.5 KiB",
    ]);
});
