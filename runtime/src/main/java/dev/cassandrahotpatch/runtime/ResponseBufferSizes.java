/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.schema.TableId;

/**
 * Where a local read's response is written, so that it needs no growing (CASSANDRA-21285).
 *
 * <p>Stock starts each response in 128 bytes and doubles. Here a response starts in one of two places, whichever would
 * have allocated less for the table's recent responses:
 *
 * <ul>
 *   <li>an array of its own, of the size learnt from the table's earlier responses: best when those are much alike;
 *   <li>the thread's spare array, from which the response is copied out at its exact size: best when they are not, and
 *       what a table begins with.
 * </ul>
 *
 * <p>A response never holds more memory than stock's doubling would have left it with. Nothing here throws into a read:
 * after the first failure the node goes on as stock, and {@link PatchFailures} is told why.
 *
 * <p>All methods may be called by any thread at any time.
 */
public final class ResponseBufferSizes {
    /** The largest first array that is chosen, in bytes, unless the operator says otherwise. */
    public static final int DEFAULT_MAX_INITIAL_BYTES = 1024 * 1024;

    /** The least that an operator may set: where stock starts, too. */
    public static final int LEAST_MAX_INITIAL_BYTES = TableSizes.STOCK_FIRST_BYTES;

    /** The most that an operator may set, in bytes. */
    public static final int MOST_MAX_INITIAL_BYTES = 16 * 1024 * 1024;

    /** The most that a thread's spare array takes, in bytes, on a large heap. */
    static final int MOST_SPARE_BYTES = 256 * 1024;

    /** Tables that are remembered: less than 1 KiB each. */
    static final int MOST_TABLES = 4096;

    // The spare arrays of 300 threads (Cassandra's pools for reads and requests make 160) together take less than 1% of
    // the heap, and at most 75 MiB.
    private static final ResponseBufferSizes NODE = new ResponseBufferSizes(
            Integer.getInteger(
                    "cassandra.hotpatch.response_buffer_sizing.max_initial_bytes", DEFAULT_MAX_INITIAL_BYTES),
            (int) Math.min(Runtime.getRuntime().maxMemory() >>> 15, MOST_SPARE_BYTES));

    private final int maxInitialBytes;
    private final int maxSpareBytes;

    /** Written by the first reads of a table. An entry holds no schema, so a dropped table's costs only its own bytes. */
    final ConcurrentHashMap<TableId, TableSizes> tables = new ConcurrentHashMap<>();

    private final ThreadLocal<SpareArray> spare;

    /** The first failure: set once, by the thread that met it; from then on every thread does as stock does. */
    final AtomicReference<Throwable> failure = new AtomicReference<>();

    // Written only for responses that are learnt; each counts for as many as it stands for.
    final LongAdder responses = new LongAdder();
    final LongAdder outgrown = new LongAdder();
    final LongAdder trimmed = new LongAdder();
    final LongAdder savedBytes = new LongAdder();

    ResponseBufferSizes(int maxInitialBytes, int maxSpareBytes) {
        this.maxInitialBytes = Math.max(LEAST_MAX_INITIAL_BYTES, Math.min(maxInitialBytes, MOST_MAX_INITIAL_BYTES));
        // a power of two, so that it grows to the sizes that stock's 128 bytes do
        this.maxSpareBytes = Integer.highestOneBit(
                Math.max(TableSizes.STOCK_FIRST_BYTES, Math.min(this.maxInitialBytes, maxSpareBytes)));
        this.spare = ThreadLocal.withInitial(() -> new SpareArray(this.maxSpareBytes));
    }

    /**
     * The buffer to write a response into, instead of {@code new DataOutputBuffer()}.
     *
     * @param partitions what the response is made of; only its table is asked for
     */
    public static DataOutputBuffer start(UnfilteredPartitionIterator partitions) {
        return NODE.startFor(partitions);
    }

    /**
     * The content of a buffer that {@link #start} gave, instead of {@code buffer.buffer()}: the same bytes, from
     * position 0 to the limit, in a heap array with offset 0. The buffer must not be written to afterwards.
     *
     * @param partitions what {@link #start} was called with
     */
    public static ByteBuffer finish(DataOutputBuffer buffer, UnfilteredPartitionIterator partitions) {
        return NODE.finishFor(buffer, partitions);
    }

    /** Responses made, about: of a table that is well known, one in eight is looked at and counts for eight. */
    public static long responses() {
        return NODE.responses.sum();
    }

    /** How many of {@link #responses()} did not fit where they started, and had to grow. */
    public static long outgrown() {
        return NODE.outgrown.sum();
    }

    /** How many of {@link #responses()} were so much smaller than their own array that they were copied out of it. */
    public static long trimmed() {
        return NODE.trimmed.sum();
    }

    /**
     * Bytes of arrays that stock would have allocated for {@link #responses()}, less those that were: an estimate, as if
     * every buffer that grew had doubled, and without the spare arrays themselves.
     */
    public static long savedBytes() {
        return NODE.savedBytes.sum();
    }

    DataOutputBuffer startFor(UnfilteredPartitionIterator partitions) {
        if (failure.get() == null) {
            try {
                int initialBytes = sizesOf(partitions).initialBytes();
                return initialBytes == TableSizes.SPARE ? spare.get().lend() : new DataOutputBuffer(initialBytes);
            } catch (RuntimeException | LinkageError e) {
                fail(e);
            }
        }
        return new DataOutputBuffer();
    }

    ByteBuffer finishFor(DataOutputBuffer buffer, UnfilteredPartitionIterator partitions) {
        if (failure.get() == null) {
            try {
                return exactOrLearnt(buffer, partitions);
            } catch (RuntimeException | LinkageError e) {
                fail(e);
            }
        }
        // The response may lie in a spare array. It was not given back, so it is the response's alone.
        return buffer.buffer();
    }

    private ByteBuffer exactOrLearnt(DataOutputBuffer buffer, UnfilteredPartitionIterator partitions) {
        int size = buffer.getLength();
        int capacity = buffer.getData().length;
        SpareArray spareArray = spare.get();
        boolean lent = spareArray.isLentTo(buffer);
        boolean copied = lent ? spareArray.contains(buffer) : capacity > TableSizes.stockCapacity(size);

        TableSizes sizes = sizesOf(partitions);
        int weight = sizes.weight();
        if (weight > 0) {
            count(weight, size, lent ? 0 : sizes.initialBytes(), lent ? spareArray.bytes() : 0, capacity, copied);
            sizes.learn(size);
        }

        ByteBuffer response = copied ? ByteBuffer.wrap(Arrays.copyOf(buffer.getData(), size)) : buffer.buffer(false);
        if (lent) {
            spareArray.takeBack(size); // last: nothing may fail between this and the response's return
        }
        return response;
    }

    /**
     * Counts a response of {@code size} bytes, for {@link #responses()} and its companions.
     *
     * @param own the length of the array of its own that it started in, or 0
     * @param lent the length of the spare array that it started in, or 0
     * @param capacity the length of the array that it ended in
     */
    private void count(int weight, int size, int own, int lent, int capacity, boolean copied) {
        int grown = Math.max(0, capacity - own - lent);
        // doubling from a to b allocates 2b - 2a more
        long allocated = own + 2L * grown + (copied ? size : 0);
        long stock = 2 * TableSizes.stockCapacity(size) - TableSizes.STOCK_FIRST_BYTES;
        responses.add(weight);
        savedBytes.add(weight * (stock - allocated));
        if (grown > 0) {
            outgrown.add(weight);
        }
        if (copied && lent == 0) {
            trimmed.add(weight);
        }
    }

    private void fail(Throwable e) {
        if (failure.compareAndSet(null, e)) {
            PatchFailures.report("response_buffer_sizing", e);
        }
    }

    TableSizes sizesOf(UnfilteredPartitionIterator partitions) {
        TableId table = partitions.metadata().id;
        TableSizes sizes = tables.get(table);
        return sizes != null ? sizes : firstSizesOf(table);
    }

    private TableSizes firstSizesOf(TableId table) {
        if (tables.size() >= MOST_TABLES) {
            tables.clear(); // all relearn within a few reads; no table's past is worth a longer memory than that
        }
        TableSizes sizes = new TableSizes(maxInitialBytes, maxSpareBytes);
        TableSizes earlier = tables.putIfAbsent(table, sizes);
        return earlier != null ? earlier : sizes;
    }
}
