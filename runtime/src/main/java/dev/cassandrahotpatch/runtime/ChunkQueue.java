/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongConsumer;
import org.apache.cassandra.utils.JVMStabilityInspector;
import org.apache.cassandra.utils.Throwables;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The chunks of one compressed data file on their way to disk (CASSANDRA-21655).
 *
 * <p>Two threads at a time: the <em>producer</em>, which fills the file's buffer and calls its methods, and a
 * <em>server</em>, one of {@link ChunkThreads}. What {@code flushData} owns in the file (offsets, sizes, checksums, the
 * channel, the compressed buffer, the index of chunks) belongs to the {@link #owner}, the thread that is writing a chunk; while
 * there is none and nothing is waiting, to the producer.
 *
 * <p>Memory ordering: ownership changes hands only under {@link #lock}, so all that one owner wrote, also in the file and in
 * the chunk, is visible to the next. All fields that are not final are guarded by that lock, unless they say otherwise.
 *
 * <p>Whoever needs chunks to be written never depends on a server: if none is at it, the producer writes them itself, in order.
 * So neither a busy pool nor a thread that could not be started, nor one that died, makes anybody wait for ever; a wait
 * ends as soon as the one write ends that is under way, as in stock.
 */
public final class ChunkQueue implements Runnable {
    static final String SETTINGS = "cassandra.hotpatch.async_sstable_writer.";
    private static final long WRITER_BYTES = Long.getLong(SETTINGS + "writer_bytes", 4L << 20);
    private static final long FORCE_BYTES = Long.getLong(SETTINGS + "force_bytes", 0);

    /**
     * A server that sleeps is woken for this many bytes at a time: to wake a thread costs the producer more than to fill some
     * chunks, so it is to be rare.
     */
    private static final int BATCH_BYTES = 1 << 20;

    private static final int BATCH_CHUNKS = 64;
    /** How long a server sleeps before it looks by itself whether there is anything to write, so that few need wake it. */
    private static final long NAP_NANOS = TimeUnit.MICROSECONDS.toNanos(200);
    /** After so many naps in a row that were in vain, a server leaves the file. */
    private static final int NAPS = 5;

    private static final int NOBODY = -1;

    private static final Logger LOGGER = LoggerFactory.getLogger("org.apache.cassandra.hotpatch");
    private static final AtomicBoolean WARNED = new AtomicBoolean();

    private final ChunkedFile file;
    private final ReentrantLock lock = new ReentrantLock();
    /** For the server: a batch is waiting, or nothing more will come. */
    private final Condition work = lock.newCondition();
    /** For those who wait until fewer chunks are in flight. */
    private final Condition progress = lock.newCondition();

    /** Full chunks, oldest first. Made with room for all that it may hold, so that adding one can't fail. */
    private ArrayDeque<ByteBuffer> waiting = new ArrayDeque<>(1);
    /** The thread inside the file's {@code flushData}, or null. */
    private Thread owner;
    /** Whether this queue lies with {@link ChunkThreads} or is being served. */
    private boolean scheduled;
    /** Whether a server is at this queue. */
    private boolean served;
    /** Progress is signalled once no more chunks than this are in flight. */
    private int awaited = NOBODY;

    private int chunkBytes;
    private int mostInFlight;
    private int batch;
    /** What can be filled instead of the file's buffer; null until this queue has joined the users of {@link ChunkSlots}. */
    private ChunkSlots.Kind slots;
    /** The period in which {@link ChunkProducers} has been told of this producer last. */
    private long countedIn;

    private boolean released;
    /** What writing a chunk threw. It stays: after it the file is short of a chunk, and must never be completed. */
    private Throwable failure;

    private boolean failureSeen;

    /** The file's ends after the chunk that was written last; only of use while chunks are in flight. */
    private long compressedEnd;

    private long uncompressedEnd;
    /** Belongs to the owner, as the file does. */
    private long unforcedBytes;

    /** Written and read by the producer only. */
    private Listener listener;
    /** Whether the listener has yet to be told of {@link #flushedEnd}. */
    private boolean flushed;

    private long flushedEnd;

    ChunkQueue(ChunkedFile file) {
        this.file = file;
    }

    /** Queues a full chunk; returns a slot to fill next, or null, with nothing in flight, if there is none to be had. */
    ByteBuffer handOff(ByteBuffer chunk) {
        ByteBuffer slot = takeSlot(chunk);
        if (slot == null) {
            return null;
        }
        try {
            tellListener();
        } catch (Throwable e) { // the chunk stays with the producer
            ChunkSlots.SHARED.give(slots, slot);
            throw e;
        }
        slot.order(chunk.order());
        lock.lock();
        try {
            if (failure != null || released) { // since the slot was taken: nothing may be written any more
                ChunkSlots.SHARED.give(slots, slot);
                throwFailure();
                return null;
            }
            if (inFlight() == 0) {
                noteEnds();
            }
            boolean wasScheduled = scheduled;
            scheduled = wasScheduled || ChunkThreads.serve(this);
            waiting.addLast(chunk);
            if (wasScheduled && waiting.size() == batch) {
                work.signal();
            }
        } finally {
            lock.unlock();
        }
        return slot;
    }

    private ByteBuffer takeSlot(ByteBuffer chunk) {
        lock.lock();
        try {
            if (released) {
                return null;
            }
            if (slots == null) {
                join(chunk);
            }
            long period = ChunkProducers.periodOf(System.nanoTime());
            if (period != countedIn) {
                countedIn = period;
                ChunkProducers.SHARED.count(period);
            }
            if (!scheduled && !ChunkThreads.haveCoreForOneMore()) {
                reduceTo(0);
                throwFailure();
                return null;
            }
            if (!served && waiting.size() >= batch) {
                // every server is busy elsewhere: no gain in a long queue, whose chunks would leave the cache
                reduceTo(0);
            }
            while (true) {
                throwFailure();
                if (released) {
                    return null;
                }
                int inFlight = inFlight();
                if (inFlight < mostInFlight) {
                    ByteBuffer slot = ChunkSlots.SHARED.take(slots);
                    if (slot != null || inFlight == 0) {
                        return slot;
                    }
                }
                reduceTo(inFlight / 2);
            }
        } finally {
            lock.unlock();
        }
    }

    private void join(ByteBuffer chunk) {
        int bytes = chunk.capacity();
        chunkBytes = bytes;
        mostInFlight = (int) Math.max(2, WRITER_BYTES / bytes);
        batch = Math.max(1, Math.min(Math.min(BATCH_CHUNKS, BATCH_BYTES / bytes), mostInFlight / 2));
        waiting = new ArrayDeque<>(mostInFlight + 1);
        slots = ChunkSlots.SHARED.join(chunk);
        if ((WRITER_BYTES < 2L * bytes || !ChunkSlots.SHARED.hasRoomFor(2L * bytes))
                && WARNED.compareAndSet(false, true)) {
            LOGGER.warn(
                    "[hotpatch] {}writer_bytes or {}total_bytes is less than two chunks of {} bytes: a writer of such chunks may"
                            + " have two in flight if total_bytes allows, and otherwise works as stock",
                    SETTINGS,
                    SETTINGS,
                    bytes);
        }
    }

    /**
     * Returns once everything handed over is written.
     *
     * @throws RuntimeException or Error what writing a chunk threw
     */
    void drain() {
        lock.lock();
        try {
            // flushData itself asks for the file's position
            if (owner != Thread.currentThread() && !released) {
                reduceTo(0);
                throwFailure();
            }
        } finally {
            lock.unlock();
        }
    }

    /** Serves this queue; called by a thread of {@link ChunkThreads}. */
    @Override
    public void run() {
        lock.lock();
        try {
            served = true;
            do {
                while (owner == null && !waiting.isEmpty()) {
                    writeNext();
                }
            } while (owner == null && awaitChunks());
        } finally {
            served = false;
            scheduled = false;
            ChunkThreads.served();
            progress.signalAll(); // whoever counted on this server goes on alone
            lock.unlock();
        }
    }

    /** Waits a while for chunks; returns whether there are any to write. */
    private boolean awaitChunks() {
        long began = System.nanoTime();
        for (int nap = 0; nap < NAPS && waiting.isEmpty() && !released; nap++) {
            try {
                work.awaitNanos(NAP_NANOS);
            } catch (InterruptedException e) {
                // nothing that we know interrupts our threads; with the interrupt gone, the next write keeps its
                // channel
                nap = NAPS;
            }
        }
        AsyncSSTableWriterCounters.WRITER_IDLE_NANOS.add(System.nanoTime() - began);
        return !waiting.isEmpty();
    }

    /** Returns once no more chunks than this are in flight, and writes them itself where no other thread is at it. */
    private void reduceTo(int target) {
        while (inFlight() > target) {
            if (owner == null) {
                writeNext();
            } else {
                awaited = Math.max(awaited, target);
                long began = System.nanoTime();
                progress.awaitUninterruptibly();
                AsyncSSTableWriterCounters.PRODUCER_WAIT_NANOS.add(System.nanoTime() - began);
            }
        }
    }

    private int inFlight() {
        return waiting.size() + (owner == null ? 0 : 1);
    }

    /** Writes the next chunk as its owner, without the lock. Throws nothing: a failure is kept for the producer. */
    private void writeNext() {
        ByteBuffer chunk = waiting.pollFirst();
        owner = Thread.currentThread();
        lock.unlock();
        Throwable thrown = null;
        try {
            file.hotpatchFlushData(chunk);
            forceSometimes();
        } catch (Throwable e) {
            thrown = e;
        } finally {
            lock.lock();
            owner = null;
            failure = thrown != null ? thrown : failure; // before anything else can go wrong
            ChunkSlots.SHARED.give(slots, chunk);
        }
        if (thrown == null) {
            noteEnds();
            AsyncSSTableWriterCounters.CHUNKS.increment();
            AsyncSSTableWriterCounters.BYTES.add(chunkBytes);
        } else {
            dropWaiting();
        }
        if (inFlight() <= awaited) {
            awaited = NOBODY;
            progress.signalAll();
        }
    }

    private void forceSometimes() {
        if (FORCE_BYTES > 0) {
            unforcedBytes += chunkBytes;
            if (unforcedBytes >= FORCE_BYTES) {
                unforcedBytes = 0;
                file.hotpatchForce();
            }
        }
    }

    private void noteEnds() {
        compressedEnd = file.hotpatchCompressedEnd();
        uncompressedEnd = file.hotpatchUncompressedEnd();
    }

    private void dropWaiting() {
        while (!waiting.isEmpty()) {
            ChunkSlots.SHARED.give(slots, waiting.pollFirst());
        }
    }

    private void throwFailure() {
        if (failure != null) {
            failureSeen = true;
            ChunkQueue.<RuntimeException>rethrow(failure);
        }
    }

    /** Throws as is: {@code flushData} declares nothing, so it is unchecked. */
    @SuppressWarnings("unchecked")
    private static <T extends Throwable> void rethrow(Throwable failure) throws T {
        throw (T) failure;
    }

    /** Bytes that the file has on disk, with what is in flight counted at the ratio that the file has had. */
    long estimate() {
        lock.lock();
        try {
            int inFlight = inFlight();
            if (inFlight == 0) {
                return file.hotpatchCompressedEnd();
            }
            double ratio = uncompressedEnd == 0 ? 1 : (double) compressedEnd / uncompressedEnd;
            return compressedEnd + (long) (ratio * inFlight * chunkBytes);
        } finally {
            lock.unlock();
        }
    }

    /** Drops what waits, waits for what is being written, and lets go of everything. Never throws; only the first call acts. */
    Throwable release(Throwable accumulate) {
        Throwable unseen;
        lock.lock();
        try {
            if (released) {
                return accumulate;
            }
            released = true;
            dropWaiting();
            work.signal();
            if (owner != Thread.currentThread()) {
                reduceTo(0);
            }
            if (slots != null) {
                ChunkSlots.SHARED.leave();
            }
            unseen = failureSeen ? null : failure;
            failureSeen = true;
        } finally {
            lock.unlock();
        }
        return unseen == null || unseen == accumulate ? accumulate : Throwables.merge(accumulate, inspected(unseen));
    }

    /**
     * Has a failure judged that nobody has thrown: as a suppressed exception of another it would not be looked at, and the
     * disk failure policy not be followed.
     */
    private static Throwable inspected(Throwable unseen) {
        try {
            JVMStabilityInspector.inspectThrowable(unseen);
        } catch (Throwable rethrown) { // the same one, which is on its way anyhow, or what came of judging it
            if (rethrown != unseen) {
                unseen.addSuppressed(rethrown);
            }
        }
        return unseen;
    }

    /** Wraps the file's post-flush listener, unless it has one: 6.0's direct writer sets its own around the one we wrapped. */
    Runnable onProducer(Runnable runnable) {
        if (listener != null) {
            return runnable;
        }
        listener = new Listener(runnable, null);
        return listener;
    }

    /** As {@link #onProducer(Runnable)}; from 5.0 on, the listener is told up to where the file is written. */
    LongConsumer onProducer(LongConsumer consumer) {
        if (listener != null) {
            return consumer;
        }
        listener = new Listener(null, consumer);
        return listener;
    }

    /** Tells the listener, on the producer, what has been written since it was told last. */
    private void tellListener() {
        long end;
        lock.lock();
        try {
            if (!flushed) {
                return;
            }
            flushed = false;
            end = flushedEnd;
        } finally {
            lock.unlock();
        }
        listener.tell(end);
    }

    /** The listener must not be told of an end that the file is about to be shortened to less than. */
    void forgetFlushed() {
        lock.lock();
        try {
            flushed = false;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Stands between {@code flushData} and the file's listener. From a chunk that was handed over, it only notes how far the
     * file is written; the producer passes that on when it is next at the file. From a chunk that the producer flushes
     * as stock does, it passes the call on at once.
     */
    private final class Listener implements Runnable, LongConsumer {
        private final Runnable runnable;
        private final LongConsumer consumer;

        Listener(Runnable runnable, LongConsumer consumer) {
            this.runnable = runnable;
            this.consumer = consumer;
        }

        @Override
        public void run() {
            accept(0);
        }

        @Override
        public void accept(long end) {
            lock.lock();
            try {
                flushed = owner == Thread.currentThread();
                flushedEnd = end;
                if (flushed) {
                    return;
                }
            } finally {
                lock.unlock();
            }
            tell(end);
        }

        /**
         * Up to 4.1 the listener itself asks the file for {@code getLastFlushOffset()}, without a lock: it may see the end of
         * a chunk written just after the one noted, which is on disk as well.
         */
        void tell(long end) {
            if (runnable != null) {
                runnable.run();
            } else {
                consumer.accept(end);
            }
        }
    }
}
