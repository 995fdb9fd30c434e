/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.nio.ByteBuffer;
import java.util.function.LongConsumer;

/**
 * What the woven methods of {@code CompressedSequentialWriter} call (CASSANDRA-21655). Static, because woven code should be
 * no more than a call; all that there is to know is in {@link ChunkQueue}.
 *
 * <p>Until {@link #open()} is called, no chunk is handed over and every writer works as stock.
 */
public final class AsyncSSTableWriter {
    private static final String COMPRESSED = "org.apache.cassandra.io.compress.CompressedSequentialWriter";
    private static final String DIRECT = "org.apache.cassandra.io.compress.DirectCompressedSequentialWriter";

    /**
     * Whether chunks are handed over. Written by the agent; a producer that sees a change late writes one more chunk the
     * way it did before, which is right either way.
     */
    private static volatile boolean open;

    private AsyncSSTableWriter() {}

    /** Lets writers hand chunks over; to be called once every site of the patch is woven. */
    public static void open() {
        open = true;
    }

    /** Makes every writer, also those at work, write its further chunks as stock does. */
    public static void close() {
        open = false;
    }

    /**
     * Called by {@code doFlush}: hands a full chunk to the writer thread.
     *
     * @param count what {@code doFlush} got: 0 from callers that go on to read or move what {@code flushData} owns
     * @return an empty buffer of the same kind to fill instead, or null if nothing was handed over: then all earlier chunks
     *     are written, and the caller must flush this one as stock does
     * @throws RuntimeException or Error what writing an earlier chunk threw
     */
    public static ByteBuffer handOff(ChunkedFile file, int count, ByteBuffer chunk) {
        ChunkQueue queue = file.hotpatchQueue();
        // an interrupted thread that writes loses its channel; whoever interrupts gets the same from us
        boolean wanted = open && count > 0 && !chunk.hasRemaining() && isKnown(file);
        if (wanted && !Thread.currentThread().isInterrupted()) {
            ByteBuffer next = (queue == null ? addQueue(file) : queue).handOff(chunk);
            if (next != null) {
                return next;
            }
        } else if (queue != null) {
            queue.drain();
        }
        if (wanted) {
            AsyncSSTableWriterCounters.FALLBACKS.increment();
        }
        return null;
    }

    /** Called first by what reads the file's state: returns once everything handed over is written. */
    public static void drain(Object file) {
        ChunkQueue queue = queueOf(file);
        if (queue != null) {
            queue.drain();
        }
    }

    /** Called first by what shortens the file. */
    public static void drainToTruncate(Object file) {
        ChunkQueue queue = queueOf(file);
        if (queue != null) {
            queue.drain();
            queue.forgetFlushed();
        }
    }

    /**
     * Called by {@code getEstimatedOnDiskBytesWritten}, once a partition: does not wait, and counts what is in flight with the
     * compression ratio that the file has had.
     *
     * @param chunkOffset what stock returns
     */
    public static long estimate(long chunkOffset, Object file) {
        ChunkQueue queue = queueOf(file);
        return queue == null ? chunkOffset : queue.estimate();
    }

    /**
     * Called first by {@code doPreCleanup}, before it closes the channel and frees buffers: drops what is still to be written,
     * waits for what is being written, and lets go of everything. Never throws.
     *
     * @return {@code accumulate}, with the failure of a chunk merged into it if nobody has seen that failure yet
     */
    public static Throwable release(Object file, Throwable accumulate) {
        ChunkQueue queue = queueOf(file);
        return queue == null ? accumulate : queue.release(accumulate);
    }

    /** Makes a post-flush listener run on the producing thread only: Cassandra's are not thread-safe. */
    public static Runnable onProducer(Object file, Runnable listener) {
        if (!(file instanceof ChunkedFile)) {
            return listener;
        }
        ChunkQueue queue = queueOf(file);
        return (queue == null ? addQueue((ChunkedFile) file) : queue).onProducer(listener);
    }

    /** Makes a post-flush listener run on the producing thread only: Cassandra's are not thread-safe. */
    public static LongConsumer onProducer(Object file, LongConsumer listener) {
        if (!(file instanceof ChunkedFile)) {
            return listener;
        }
        ChunkQueue queue = queueOf(file);
        return (queue == null ? addQueue((ChunkedFile) file) : queue).onProducer(listener);
    }

    /**
     * The file's queue, or null where it has none. A file that is no {@link ChunkedFile} is one whose own class was not
     * woven (another agent had changed it, say) although a class beside it was: it is to work as stock.
     */
    private static ChunkQueue queueOf(Object file) {
        return file instanceof ChunkedFile ? ((ChunkedFile) file).hotpatchQueue() : null;
    }

    private static ChunkQueue addQueue(ChunkedFile file) {
        ChunkQueue queue = new ChunkQueue(file);
        file.hotpatchQueue(queue);
        return queue;
    }

    /** Whether all of the file's class is woven: a subclass that we have not read may touch what we do not guard. */
    private static boolean isKnown(ChunkedFile file) {
        String name = file.getClass().getName();
        return name.equals(COMPRESSED) || name.equals(DIRECT);
    }
}
