/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.util.HashSet;
import java.util.Set;

/**
 * How many threads are filling chunks at the moment (CASSANDRA-21655). A server gains something on a core that no producer
 * needs; on any other it takes turns with the producers, which costs them more than it saves.
 */
final class ChunkProducers {
    /** They are counted anew about eight times a second, often enough to notice when one has come or gone. */
    private static final int PERIOD_SHIFT = 27;

    static final ChunkProducers SHARED = new ChunkProducers();

    /** The period that is being counted; guarded by this, as are the threads. */
    private long period;

    /** By their ids: a thread that writes one short file after another is one. */
    private Set<Long> inThisPeriod = new HashSet<>();

    private Set<Long> inTheLastPeriod = new HashSet<>();
    /** Written under the lock, read by producers at each chunk: one that sees it late decides for one more chunk as before. */
    private volatile int active;

    /** The period that a moment lies in. */
    static long periodOf(long nanoTime) {
        return nanoTime >> PERIOD_SHIFT;
    }

    /** Counts the thread that calls; to be called once a period for each file that it fills chunks of. */
    void count(long newPeriod) {
        count(newPeriod, Thread.currentThread().getId());
    }

    synchronized void count(long newPeriod, long thread) {
        long passed = newPeriod - period;
        if (passed > 0) { // a thread may come late with a period that is over
            Set<Long> oldest = inTheLastPeriod;
            inTheLastPeriod = inThisPeriod;
            inThisPeriod = oldest;
            inThisPeriod.clear();
            if (passed > 1) {
                inTheLastPeriod.clear();
            }
            period = newPeriod;
        }
        inThisPeriod.add(thread);
        active = Math.max(inThisPeriod.size(), inTheLastPeriod.size());
    }

    /** How many there are, by the last full period or the present one, whichever has more. */
    int active() {
        return active;
    }
}
