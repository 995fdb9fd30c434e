/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

/**
 * How many producers are filling chunks at the moment (CASSANDRA-21655). A server gains something on a core that no producer
 * needs; on any other it takes turns with the producers, which costs them more than it saves.
 */
final class ChunkProducers {
    /** Producers are counted anew about eight times a second, often enough to notice when one has come or gone. */
    private static final int PERIOD_SHIFT = 27;

    static final ChunkProducers SHARED = new ChunkProducers();

    /** The period that is being counted; guarded by this, as are the counts. */
    private long period;

    private int inThisPeriod;
    private int inTheLastPeriod;
    /** Written under the lock, read by producers at each chunk: one that sees it late decides for one more chunk as before. */
    private volatile int active;

    /** The period that a moment lies in. */
    static long periodOf(long nanoTime) {
        return nanoTime >> PERIOD_SHIFT;
    }

    /** Counts a producer; to be called once a period by each. */
    synchronized void count(long newPeriod) {
        long passed = newPeriod - period;
        if (passed > 0) { // a thread may come late with a period that is over
            inTheLastPeriod = passed == 1 ? inThisPeriod : 0;
            inThisPeriod = 0;
            period = newPeriod;
        }
        inThisPeriod++;
        active = Math.max(inThisPeriod, inTheLastPeriod);
    }

    /** How many there are, by the last full period or the present one, whichever has more. */
    int active() {
        return active;
    }
}
