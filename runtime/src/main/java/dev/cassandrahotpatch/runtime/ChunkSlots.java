/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;

/**
 * The memory for chunks in flight, bounded over all writers (CASSANDRA-21655).
 *
 * <p>Buffers of one size and kind are interchangeable: a producer takes an empty slot and gives its full buffer away, which
 * becomes the slot that is given back here. So there is one slot out for each chunk in flight, a writer without chunks in
 * flight has none, and Cassandra frees the buffer that a writer ends with as it always does.
 *
 * <p>Thread-safe: all state is guarded by this object's monitor, which nobody holds for longer than a few instructions; it also
 * hands a slot's contents and position from the thread that gives it back to the one that takes it next.
 */
final class ChunkSlots {
    /** How long to leave the allocator alone after it ran out: each attempt makes the JVM collect garbage and wait. */
    private static final long RETRY_NANOS = 60_000_000_000L;

    /** Free slots that stay while no chunk is in flight: as much as one writer has by default. */
    private static final long IDLE_BYTES = 4 << 20;

    /** Cassandra's own way to free a direct buffer: it has moved in 6.0. Without it, the garbage collector frees them. */
    private static final MethodHandle CLEAN = findClean();

    /** Shared by all writers. */
    static final ChunkSlots SHARED =
            new ChunkSlots(Math.max(0, Long.getLong(ChunkQueue.SETTINGS + "total_bytes", 64L << 20)));

    private final long mostBytes;
    /** Free slots by size, negative for those on the heap; the one given back last, whose memory is in cache, comes first. */
    private final Map<Integer, ArrayDeque<ByteBuffer>> free = new HashMap<>();

    private long heldBytes;
    private int inUse;
    private int users;
    private boolean exhausted;
    private long exhaustedNanos;

    ChunkSlots(long mostBytes) {
        this.mostBytes = mostBytes;
    }

    /** Whether the bound allows for as much at all. */
    boolean hasRoomFor(long bytes) {
        return bytes <= mostBytes;
    }

    /** Registers a writer: as long as there is one, slots given back are kept for the next to take. */
    synchronized void join() {
        users++;
    }

    /** Takes a writer out; the last one to leave frees all slots. */
    synchronized void leave() {
        users--;
        if (users == 0) {
            freeUntil(0);
        }
    }

    /**
     * Takes an empty slot.
     *
     * @return null if the bound or the JVM's memory does not allow for one more
     */
    ByteBuffer take(int bytes, boolean direct) {
        synchronized (this) {
            ArrayDeque<ByteBuffer> same = free.get(direct ? bytes : -bytes);
            ByteBuffer slot = same == null ? null : same.pollFirst();
            if (slot != null) {
                inUse++;
                return slot;
            }
            if (bytes > mostBytes) {
                return null;
            }
            freeUntil(mostBytes - bytes);
            if (heldBytes + bytes > mostBytes || (exhausted && System.nanoTime() - exhaustedNanos < RETRY_NANOS)) {
                return null;
            }
            heldBytes += bytes;
            inUse++;
        }
        try {
            // not under the monitor: a JVM that is short of direct memory takes up to half a second over this
            return direct ? ByteBuffer.allocateDirect(bytes) : ByteBuffer.allocate(bytes);
        } catch (OutOfMemoryError e) { // the caller does without; whoever really needs memory finds out for itself
            synchronized (this) {
                heldBytes -= bytes;
                inUse--;
                exhausted = true;
                exhaustedNanos = System.nanoTime();
            }
            return null;
        }
    }

    /** Gives a slot back; nobody may use it any more. Never throws: a slot that can't be kept is left to the collector. */
    synchronized void give(ByteBuffer slot) {
        inUse--;
        try {
            slot.clear();
            int key = slot.isDirect() ? slot.capacity() : -slot.capacity();
            free.computeIfAbsent(key, size -> new ArrayDeque<>()).addFirst(slot);
        } catch (OutOfMemoryError e) { // which is what the caller may be reporting already
            heldBytes -= slot.capacity();
        }
        if (inUse == 0) {
            freeUntil(users == 0 ? 0 : IDLE_BYTES);
        }
    }

    synchronized long inUse() {
        return inUse;
    }

    synchronized long held() {
        return heldBytes;
    }

    private void freeUntil(long bytes) {
        for (ArrayDeque<ByteBuffer> slots : free.values()) {
            while (heldBytes > bytes && !slots.isEmpty()) {
                ByteBuffer slot = slots.pollLast();
                heldBytes -= slot.capacity();
                clean(slot);
            }
        }
    }

    private static void clean(ByteBuffer slot) {
        if (slot.isDirect() && CLEAN != null) {
            try {
                CLEAN.invokeExact(slot);
            } catch (Throwable e) { // not worth a write that has gone well: the garbage collector frees it as well
                return;
            }
        }
    }

    private static MethodHandle findClean() {
        for (String owner :
                new String[] {"org.apache.cassandra.io.util.FileUtils", "org.apache.cassandra.utils.memory.MemoryUtil"
                }) {
            try {
                return MethodHandles.publicLookup()
                        .findStatic(Class.forName(owner), "clean", MethodType.methodType(void.class, ByteBuffer.class));
            } catch (ReflectiveOperationException | LinkageError e) {
                // the other one has it, or can be used
            }
        }
        return null;
    }
}
