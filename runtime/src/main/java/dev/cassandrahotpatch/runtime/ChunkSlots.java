/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

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

    /**
     * A slot rests while so many bytes of others are used. By then its lines have left the cache of the writer thread's core
     * for the one that all share; fetched from the former, each costs the producer several times as much.
     */
    private static final long REST_BYTES = 2 << 20;

    /** Free slots that stay while no chunk is in flight: as much as one writer has by default. */
    private static final long IDLE_BYTES = 4 << 20;

    /** Cassandra's own way to free a direct buffer: it has moved in 6.0. Without it, the garbage collector frees them. */
    private static final MethodHandle CLEAN = findClean();

    /** Shared by all writers. */
    static final ChunkSlots SHARED =
            new ChunkSlots(Math.max(0, Long.getLong(ChunkQueue.SETTINGS + "total_bytes", 64L << 20)));

    private final long mostBytes;
    private final List<Kind> kinds = new ArrayList<>();

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

    /** Slots of one size, on the heap or off it. */
    static final class Kind {
        private final int bytes;
        private final boolean direct;
        /** Those that can be taken, the one that has rested longest first; guarded as all state is. */
        private final ArrayDeque<ByteBuffer> free = new ArrayDeque<>();

        Kind(ByteBuffer example) {
            bytes = example.capacity();
            direct = example.isDirect();
        }

        boolean isOf(ByteBuffer buffer) {
            return buffer.capacity() == bytes && buffer.isDirect() == direct;
        }
    }

    /**
     * Registers a writer: as long as there is one, slots given back are kept for the next to take.
     *
     * @return the kind of slots that can stand in for its buffer
     */
    synchronized Kind join(ByteBuffer buffer) {
        Kind found = null;
        for (Kind kind : kinds) {
            found = kind.isOf(buffer) ? kind : found;
        }
        if (found == null) {
            found = new Kind(buffer);
            kinds.add(found);
        }
        users++;
        return found;
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
    ByteBuffer take(Kind kind) {
        synchronized (this) {
            boolean rested = (long) kind.free.size() * kind.bytes >= REST_BYTES;
            if (rested || !mayAllocate(kind.bytes)) {
                ByteBuffer slot = takeFree(kind);
                if (slot != null) {
                    return slot;
                }
                if (kind.bytes <= mostBytes) {
                    freeUntil(mostBytes - kind.bytes); // slots of other kinds
                }
                if (!mayAllocate(kind.bytes)) {
                    return null;
                }
            }
            heldBytes += kind.bytes;
            inUse++;
        }
        try {
            // not under the monitor: a JVM that is short of direct memory takes up to half a second over this
            return kind.direct ? ByteBuffer.allocateDirect(kind.bytes) : ByteBuffer.allocate(kind.bytes);
        } catch (OutOfMemoryError e) { // the caller does without; whoever really needs memory finds out for itself
            synchronized (this) {
                heldBytes -= kind.bytes;
                inUse--;
                exhausted = true;
                exhaustedNanos = System.nanoTime();
                return takeFree(kind);
            }
        }
    }

    private ByteBuffer takeFree(Kind kind) {
        ByteBuffer slot = kind.free.pollFirst();
        inUse += slot == null ? 0 : 1;
        return slot;
    }

    private boolean mayAllocate(int bytes) {
        return heldBytes + bytes <= mostBytes && !(exhausted && System.nanoTime() - exhaustedNanos < RETRY_NANOS);
    }

    /** Gives a slot back; nobody may use it any more. Never throws: a slot that can't be kept is left to the collector. */
    synchronized void give(Kind kind, ByteBuffer slot) {
        inUse--;
        try {
            slot.clear();
            kind.free.addLast(slot);
        } catch (OutOfMemoryError e) { // which is what the caller may be reporting already
            heldBytes -= kind.bytes;
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
        for (Kind kind : kinds) {
            while (heldBytes > bytes && !kind.free.isEmpty()) {
                heldBytes -= kind.bytes;
                clean(kind.free.pollFirst());
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
