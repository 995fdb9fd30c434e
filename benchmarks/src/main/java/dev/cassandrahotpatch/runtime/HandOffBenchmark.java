/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * {@code async_sstable_writer}: what it costs a producer to hand a chunk over, when writing it takes no time. In the
 * runtime's package, since the queue is nobody else's business.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class HandOffBenchmark {
    private static final int CHUNK_BYTES = 16 << 10;

    /** A file of one producer's, whose chunks go nowhere. */
    @State(Scope.Thread)
    public static class Nowhere implements ChunkedFile {
        private final ChunkQueue queue = new ChunkQueue(this);
        private ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK_BYTES);
        /** Written by whoever owns the file. */
        private long written;

        /** Waits for the last chunk. */
        @TearDown(Level.Iteration)
        public void drain() {
            queue.drain();
        }

        /** Gives back what the queue holds. */
        @TearDown
        public void release() {
            Throwable failure = queue.release(null);
            if (failure != null) {
                throw new IllegalStateException(failure);
            }
        }

        @Override
        public void hotpatchFlushData(ByteBuffer full) {
            written += full.capacity();
        }

        @Override
        public void hotpatchForce() {}

        @Override
        public long hotpatchCompressedEnd() {
            return written;
        }

        @Override
        public long hotpatchUncompressedEnd() {
            return written;
        }

        @Override
        public ChunkQueue hotpatchQueue() {
            return queue;
        }

        @Override
        public void hotpatchQueue(ChunkQueue given) {
            throw new IllegalStateException("has one");
        }
    }

    @Benchmark
    public ByteBuffer handOff(Nowhere file) {
        file.chunk.position(CHUNK_BYTES);
        ByteBuffer next = file.queue.handOff(file.chunk);
        if (next == null) { // no slot: stock would write it, into nowhere
            file.chunk.clear();
        } else {
            file.chunk = next;
        }
        return file.chunk;
    }
}
