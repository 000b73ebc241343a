package dev.iostep.phone.measure;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import org.junit.Test;

public final class HistogramTest {
    /** Numbers of the engine's own buckets: 923,024 ns is in 3266, and 36,000,308 in 4626. */
    @Test
    public void bucketsAreThoseOfTheEngine() {
        assertEquals(0, Histogram.index(0));
        assertEquals(511, Histogram.index(511));
        assertEquals(512, Histogram.index(512));
        assertEquals(512, Histogram.index(513));
        assertEquals(513, Histogram.index(514));
        assertEquals(3266, Histogram.index(923_024));
        assertEquals(4626, Histogram.index(36_000_308));
    }

    @Test
    public void aGreaterValueIsNeverInAnEarlierBucket() {
        int before = 0;
        for (long value = 0; value < 1L << 40; value += 1 + value / 600) {
            int index = Histogram.index(value);
            assertTrue(value + "", index >= before && index - before <= 1);
            before = index;
        }
    }
}
