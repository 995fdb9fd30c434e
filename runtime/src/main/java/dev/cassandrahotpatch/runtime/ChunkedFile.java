/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.nio.ByteBuffer;

/**
 * What weaving adds to Cassandra's {@code CompressedSequentialWriter}, so that a {@link ChunkQueue} can drive it
 * (CASSANDRA-21655).
 *
 * <p>Not thread-safe: all but the queue's accessors touch what {@code flushData} owns, so only the thread that owns the file
 * may call them; {@link ChunkQueue} says which thread that is.
 */
public interface ChunkedFile {
    /**
     * The release's own {@code flushData}, over the given chunk instead of the writer's buffer: compresses, checksums and
     * writes it, and calls the post-flush listener.
     */
    void hotpatchFlushData(ByteBuffer chunk);

    /** Forces what has been written to disk, without metadata, with the errors of the release's own {@code sync}. */
    void hotpatchForce();

    /** Bytes of the file that the chunks flushed so far take, or will take once they are on disk. */
    long hotpatchCompressedEnd();

    /** Bytes that those chunks had before they were compressed. */
    long hotpatchUncompressedEnd();

    /** The file's queue, or null while it has none. */
    ChunkQueue hotpatchQueue();

    /** Gives the file its queue; called once, by the producing thread. */
    void hotpatchQueue(ChunkQueue queue);
}
