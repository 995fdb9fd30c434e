/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.util.concurrent.ThreadLocalRandom;

/**
 * How large one table's responses have been, and the first array that would have allocated the fewest bytes for them.
 *
 * <p>Any number of threads learn and read at once, without locks or atomic updates: a racing update may lose a count,
 * which blurs the answer and harms nothing else. Nothing here allocates once constructed.
 */
final class TableSizes {
    /** The answer "no size fits these responses: write them into the thread's spare array". */
    static final int SPARE = 0;

    /** Once warm, one response in this many is learnt, so that threads mostly read what they share. */
    static final int SAMPLE = 8;

    /** Stock's first array, and the smallest that is ever chosen. */
    static final int STOCK_FIRST_BYTES = 128;

    private static final int FIRST_WINDOW = 16;
    private static final int WARM_WINDOW = 128;

    /** Copying n bytes is taken to cost as much as allocating n / 8: enough to prefer an array that just fits. */
    private static final int COPY = 8;

    // Bytes allocated for each byte of a response that outgrows its first array: two to four, as the sizes fall and as
    // many or few pieces are written. An array of a table's own must be worth it whichever it turns out to be, so the
    // spare array is given the best of it. An array of its own is likely to end larger than stock's, and to be copied.
    private static final int GROWING_SPARE = 2;
    private static final int GROWING_OWN = 4;

    // Sizes are counted in four buckets an octave, from 64 bytes (and less) to 16 MiB (and more).
    private static final int STEPS = 4;
    private static final int FIRST_OCTAVE = 6;
    private static final int BUCKETS = (24 - FIRST_OCTAVE) * STEPS + 1;

    // Where things are in `cells`. A bucket's count and largest size are neighbours: one cache line for a response.
    // What
    // is written lies a cache line away from this object's fields, which every read of the table reads.
    private static final int COUNTS = 16;
    private static final int PENDING = COUNTS + 2 * BUCKETS;

    private final int maxInitialBytes;
    private final int spareBytes;

    /**
     * Counts and largest sizes by bucket, and the number of responses since the last choice. Plain: written by every
     * learning thread, and a lost or late update is only a blur.
     */
    private final int[] cells = new int[PENDING + 1];

    /** The choice. Written by whichever thread completes a window; volatile, so that all readers come to see it. */
    private volatile int initialBytes = SPARE;

    /** Responses between two choices: grows to WARM_WINDOW. Plain: a thread that sees it late learns a little more. */
    private int window = FIRST_WINDOW;

    /**
     * @param maxInitialBytes the largest first array to choose
     * @param spareBytes what a thread's spare array may grow to
     */
    TableSizes(int maxInitialBytes, int spareBytes) {
        this.maxInitialBytes = maxInitialBytes;
        this.spareBytes = spareBytes;
    }

    /** The size in bytes of the array to start the next response with, or {@link #SPARE}. */
    int initialBytes() {
        return initialBytes;
    }

    /** How many responses the next one to be learnt stands for, or 0 if it need not be learnt. */
    int weight() {
        if (window < WARM_WINDOW) {
            return 1;
        }
        return (ThreadLocalRandom.current().nextInt() & (SAMPLE - 1)) == 0 ? SAMPLE : 0;
    }

    /** Learns that a response had this many bytes, and chooses anew after every window of responses. */
    void learn(int size) {
        int bucket = bucket(size);
        cells[count(bucket)]++;
        if (size > cells[largest(bucket)]) {
            cells[largest(bucket)] = size;
        }
        if (++cells[PENDING] >= window) {
            cells[PENDING] = 0;
            window = Math.min(2 * window, WARM_WINDOW);
            initialBytes = cheapest();
            fade();
        }
    }

    /** The capacity that stock's doubling ends with for a response of this many bytes. */
    static long stockCapacity(int size) {
        return size <= STOCK_FIRST_BYTES ? STOCK_FIRST_BYTES : 2L * Integer.highestOneBit(size - 1);
    }

    private int cheapest() {
        int best = SPARE;
        long bestCost = costOfSpare();
        for (int bucket = 0; bucket < BUCKETS; bucket++) {
            int candidate = Math.max(cells[largest(bucket)], STOCK_FIRST_BYTES);
            if (cells[count(bucket)] > 0 && candidate <= maxInitialBytes) {
                long cost = costOf(candidate);
                if (cost < bestCost) {
                    bestCost = cost;
                    best = candidate;
                }
            }
        }
        return best;
    }

    /** Bytes allocated had every response begun in the spare array. */
    private long costOfSpare() {
        long cost = 0;
        for (int bucket = 0; bucket < BUCKETS; bucket++) {
            long size = cells[largest(bucket)];
            cost += cells[count(bucket)] * (size <= spareBytes ? size + size / COPY : GROWING_SPARE * size);
        }
        return cost;
    }

    /** Bytes allocated had every response begun in an array of its own of this size. */
    private long costOf(int first) {
        long cost = 0;
        for (int bucket = 0; bucket < BUCKETS; bucket++) {
            int size = cells[largest(bucket)];
            long more = 0;
            if (size > first) {
                more = (long) GROWING_OWN * size;
            } else if (first > stockCapacity(size)) {
                more = (long) size + size / COPY;
            }
            cost += cells[count(bucket)] * (first + more);
        }
        return cost;
    }

    /** Halves what is known, so that a change of sizes outweighs the past within a few windows. */
    private void fade() {
        for (int bucket = 0; bucket < BUCKETS; bucket++) {
            int count = cells[count(bucket)] >> 1;
            int largest = cells[largest(bucket)];
            cells[count(bucket)] = count;
            // an outlier is forgotten, too; sizes that still come restore the largest at once
            cells[largest(bucket)] = count == 0 ? 0 : largest - Math.max(0, (largest - floor(bucket)) >> 1);
        }
    }

    private static int bucket(int size) {
        if (size < 1 << FIRST_OCTAVE) {
            return 0;
        }
        int octave = 31 - Integer.numberOfLeadingZeros(size);
        int step = (size >>> (octave - 2)) & (STEPS - 1);
        return Math.min((octave - FIRST_OCTAVE) * STEPS + step, BUCKETS - 1);
    }

    private static int floor(int bucket) {
        return (STEPS + bucket % STEPS) << (bucket / STEPS + FIRST_OCTAVE - 2);
    }

    private static int count(int bucket) {
        return COUNTS + 2 * bucket;
    }

    private static int largest(int bucket) {
        return COUNTS + 2 * bucket + 1;
    }
}
