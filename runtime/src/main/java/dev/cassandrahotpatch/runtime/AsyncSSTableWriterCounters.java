/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.util.concurrent.atomic.LongAdder;

/**
 * What the asynchronous SSTable writer has done since the JVM started (CASSANDRA-21655). Any thread may read; each value is
 * exact once the writers are at rest.
 */
public final class AsyncSSTableWriterCounters {
    static final LongAdder CHUNKS = new LongAdder();
    static final LongAdder BYTES = new LongAdder();
    static final LongAdder PRODUCER_WAIT_NANOS = new LongAdder();
    static final LongAdder WRITER_IDLE_NANOS = new LongAdder();
    static final LongAdder FALLBACKS = new LongAdder();

    private AsyncSSTableWriterCounters() {}

    /** Chunks that were handed over and have been written. */
    public static long chunks() {
        return CHUNKS.sum();
    }

    /** Bytes of those chunks, before compression. */
    public static long bytes() {
        return BYTES.sum();
    }

    /** Nanoseconds that producing threads have waited for writer threads. */
    public static long producerWaitNanos() {
        return PRODUCER_WAIT_NANOS.sum();
    }

    /** Nanoseconds that writer threads have waited for more chunks of the file they were at. */
    public static long writerIdleNanos() {
        return WRITER_IDLE_NANOS.sum();
    }

    /** Full chunks that were written as stock does, because there was no slot or the producer was interrupted. */
    public static long fallbacks() {
        return FALLBACKS.sum();
    }

    /** Slots that hold a chunk in flight now. */
    public static long slotsInUse() {
        return ChunkSlots.SHARED.inUse();
    }

    /** Bytes of all slots that are allocated now, in use or free. */
    public static long slotBytes() {
        return ChunkSlots.SHARED.held();
    }
}
