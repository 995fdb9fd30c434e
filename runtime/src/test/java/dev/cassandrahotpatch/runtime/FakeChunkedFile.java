/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;

/**
 * A compressed file in memory whose "chunks" are one number over and over. What {@code flushData} owns is in plain fields on
 * purpose, and nothing here synchronises while all goes well: what two threads touch at once, or what one does not see of
 * another, comes out as a broken rule.
 */
final class FakeChunkedFile implements ChunkedFile {
    private static final int MOST_CHUNKS = 100;

    /** Rules that were broken, by whoever; thread-safe, and touched only then. */
    private final Queue<String> broken;

    private final Thread producer;
    private final int pace;
    private ChunkQueue queue;

    /** What is called once this many writes have begun: on the thread that writes, before it writes. */
    int actAt = Integer.MAX_VALUE;

    Runnable action;
    /** The write, or force, that fails, or none; {@link #failure} once it has. */
    int failAt = Integer.MAX_VALUE;

    int failForceAt = Integer.MAX_VALUE;
    boolean failWithError;
    boolean failAfterwards;
    Throwable failure;

    LongConsumer listener;
    boolean closed;

    final long[] ids = new long[MOST_CHUNKS];
    int count;
    long compressedEnd;
    long uncompressedEnd;
    int begun;
    int ended;
    int forces;
    int byServers;
    private Thread inside;

    FakeChunkedFile(Thread producer, int pace, Queue<String> broken) {
        this.producer = producer;
        this.pace = pace;
        this.broken = broken;
    }

    /** What a chunk takes on disk: anything from one byte to all that it has. */
    static long compressed(long id, int bytes) {
        return 1 + mix(id) % bytes;
    }

    static void fill(ByteBuffer chunk, long id) {
        chunk.clear();
        while (chunk.hasRemaining()) {
            chunk.putLong(id);
        }
    }

    /** The number that all of a chunk consists of. */
    static long idOf(ByteBuffer chunk) {
        long id = chunk.getLong(0);
        for (int i = 8; i < chunk.capacity(); i += 8) {
            if (chunk.getLong(i) != id) {
                throw new AssertionError("a chunk of " + id + " and " + chunk.getLong(i));
            }
        }
        return id;
    }

    @Override
    public void hotpatchFlushData(ByteBuffer chunk) {
        enter();
        begun++;
        if (failure != null) {
            broken.add("written after a failure");
        }
        if (closed) {
            broken.add("written after release");
        }
        if (begun == actAt) {
            action.run();
        }
        if (begun == failAt && !failAfterwards) {
            fail();
        }
        chunk.flip();
        if (chunk.limit() != chunk.capacity()) {
            broken.add("not full: " + chunk);
        }
        long id = idOf(chunk);
        pause(mix(id), pace);
        if (id % 8 == 0) { // flushData asks for the file's position, which drains
            AsyncSSTableWriter.drain(this);
        }
        long later = idOf(chunk);
        if (id < 0 || id != later) {
            broken.add("a chunk was changed while it was written: " + id + ", " + later);
        }
        ids[count] = id;
        count++;
        compressedEnd += compressed(id, chunk.capacity());
        uncompressedEnd += chunk.capacity();
        byServers += Thread.currentThread() == producer ? 0 : 1;
        if (begun == failAt) {
            fail();
        }
        leave();
        if (listener != null) {
            listener.accept(uncompressedEnd);
        }
    }

    @Override
    public void hotpatchForce() {
        enter();
        forces++;
        begun++;
        if (forces == failForceAt) {
            fail();
        }
        leave();
    }

    @Override
    public long hotpatchCompressedEnd() {
        checkNobodyElseIsInside();
        return compressedEnd;
    }

    @Override
    public long hotpatchUncompressedEnd() {
        checkNobodyElseIsInside();
        return uncompressedEnd;
    }

    @Override
    public ChunkQueue hotpatchQueue() {
        return queue;
    }

    @Override
    public void hotpatchQueue(ChunkQueue given) {
        queue = given;
    }

    /** Shortens the file, as the producer does on its own. */
    void truncate(int chunks, int bytes) {
        enter();
        begun++;
        Arrays.fill(ids, chunks, count, 0);
        count = chunks;
        compressedEnd = 0;
        for (int i = 0; i < chunks; i++) {
            compressedEnd += compressed(ids[i], bytes);
        }
        uncompressedEnd = (long) chunks * bytes;
        leave();
    }

    private void enter() {
        checkNobodyElseIsInside();
        inside = Thread.currentThread();
        if (inside != producer && inside.isInterrupted()) {
            broken.add("a server writes while interrupted");
        }
    }

    private void leave() {
        checkNobodyElseIsInside();
        ended++;
        inside = null;
    }

    private void fail() {
        failure = failWithError ? new LinkageError("injected") : new IllegalStateException("injected");
        leave();
        if (failure instanceof Error error) {
            throw error;
        }
        throw (RuntimeException) failure;
    }

    private void checkNobodyElseIsInside() {
        Thread seen = inside;
        if (seen != null && seen != Thread.currentThread()) {
            broken.add("two at once: " + seen.getName() + ", "
                    + Thread.currentThread().getName());
        }
    }

    /** Takes a moment, or none: up to some ten microseconds, and now and then more. */
    @SuppressWarnings("ThreadPriorityCheck") // to let others in is the point, and nothing relies on it
    static void pause(long random, int pace) {
        int kind = (int) (random >>> 8) & 31;
        if (kind < pace) {
            for (int i = (int) (random >>> 16) & 255; i > 0; i--) {
                Thread.onSpinWait();
            }
        } else if (kind < 2 * pace) {
            Thread.yield();
        } else if (kind == 31 && pace > 0) {
            LockSupport.parkNanos((random >>> 16) & 0x1ffff);
        }
    }

    /** Anything but negative, and the same for the same number. */
    private static long mix(long number) {
        long mixed = (number + 1) * 0x9e3779b97f4a7c15L;
        return ((mixed ^ (mixed >>> 29)) * 0xbf58476d1ce4e5b9L) >>> 2;
    }
}
