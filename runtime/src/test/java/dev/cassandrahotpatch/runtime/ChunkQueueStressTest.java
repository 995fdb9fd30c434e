/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.invoke.MethodHandles;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Random short lives of chunk queues that share few threads and slots, over {@link FakeChunkedFile}s that notice whatever
 * is seen, or done, by a thread that should not. The same seed gives the same programs; how their threads meet is up to the
 * machine. {@code -Dstress.rounds} makes it longer, {@code -Dstress.seed} repeats the programs.
 */
@Timeout(120)
class ChunkQueueStressTest {
    private static final long SEED = Long.getLong("stress.seed", new Random().nextLong());
    private static final int ROUNDS = Integer.getInteger("stress.rounds", 10_000);
    private static final int PRODUCERS = 3;
    private static final int WAIT_SECONDS = 20;

    private static final int WRITER_BYTES = 512;
    private static final int TOTAL_BYTES = 640;
    private static final int FORCE_BYTES = 1024;
    /** From eight in flight and four at a time to two and one, then but one slot for all, then none. */
    private static final int[] CHUNK_BYTES = {64, 64, 64, 128, 128, 256, 512, 1024};

    static {
        DatabaseDescriptor.clientInitialization(false); // has a disk failure policy, which failures are judged by
        Map<String, Integer> settings = Map.of(
                "writer_bytes", WRITER_BYTES, "total_bytes", TOTAL_BYTES, "force_bytes", FORCE_BYTES, "threads", 2);
        settings.forEach((name, value) -> System.setProperty(ChunkQueue.SETTINGS + name, value.toString()));
        try { // each reads its settings when it is initialised
            for (Class<?> reader : new Class<?>[] {ChunkQueue.class, ChunkSlots.class, ChunkThreads.class}) {
                MethodHandles.lookup().ensureInitialized(reader);
            }
        } catch (IllegalAccessException e) {
            throw new ExceptionInInitializerError(e);
        } finally {
            settings.keySet().forEach(name -> System.clearProperty(ChunkQueue.SETTINGS + name));
        }
    }

    private static final ExecutorService THREADS = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "stress");
        thread.setDaemon(true);
        return thread;
    });

    /** What came to pass, over all programs: a run that never fails a chunk, say, proves nothing about failures. */
    private enum Event {
        CHUNK_WRITTEN_BY_SERVER,
        CHUNK_WRITTEN_BY_PRODUCER,
        NO_SLOT,
        LISTENER_TOLD_AT_HAND_OFF,
        LISTENER_THREW,
        FORCED,
        FAILURE_AT_HAND_OFF,
        FAILURE_AT_DRAIN,
        FAILURE_AT_RELEASE,
        RELEASED_WITH_CHUNKS_DROPPED,
        RELEASED_BY_ANOTHER_THREAD,
        INTERRUPTED,
        TRUNCATED,
        FINISHED
    }

    private static final Map<Event, LongAdder> EVENTS = new EnumMap<>(Event.class);

    static {
        for (Event event : Event.values()) {
            EVENTS.put(event, new LongAdder());
        }
    }

    @AfterAll
    static void end() {
        THREADS.shutdownNow();
    }

    @Test
    void whateverHappensChunksAreWrittenOnceInOrderByOneThreadAtATime() throws Exception {
        System.out.println("ChunkQueueStressTest: stress.seed " + SEED);
        assertThat(ChunkSlots.SHARED.hasRoomFor(TOTAL_BYTES + 1))
                .as("this test's settings came too late: another one used these classes before")
                .isFalse();
        long waited = AsyncSSTableWriterCounters.producerWaitNanos();
        for (int round = 0; round < ROUNDS; round++) {
            List<Future<?>> producers = new ArrayList<>();
            for (int i = 0; i < 1 + round % PRODUCERS; i++) {
                long seed = SEED + (long) PRODUCERS * round + i;
                producers.add(THREADS.submit(() -> new Program(seed).run()));
            }
            for (Future<?> producer : producers) {
                await(producer, "round " + round);
            }
            assertThat(ChunkSlots.SHARED.inUse())
                    .as("slots in use, round %d", round)
                    .isZero();
            assertThat(ChunkSlots.SHARED.held())
                    .as("bytes held, round %d", round)
                    .isZero();
        }
        if (ROUNDS >= 1_000) {
            assertThat(AsyncSSTableWriterCounters.producerWaitNanos()).isGreaterThan(waited);
            EVENTS.forEach(
                    (event, times) -> assertThat(times.sum()).as(event.name()).isPositive());
        }
    }

    /** Of many tries the quickest counts, so that a busy machine does not matter. */
    @Test
    void aDrainReturnsAsSoonAsTheLastChunkIsWritten() {
        long quickest = Long.MAX_VALUE;
        for (int i = 0; i < 100; i++) {
            TimedFile file = new TimedFile();
            ChunkQueue queue = new ChunkQueue(file);
            file.hotpatchQueue(queue);
            ByteBuffer chunk = ByteBuffer.allocate(128);
            for (int j = 0; j < 3; j++) {
                chunk = handOffFull(queue, chunk);
            }
            queue.drain();
            if (file.waitedFor) {
                quickest = Math.min(quickest, System.nanoTime() - file.endedNanos);
            }
            assertThat(queue.release(null)).isNull();
        }
        assertThat(quickest).as("ns from the write's end").isLessThan(900_000); // a server stays for a millisecond
    }

    private static void count(Event event, long times) {
        EVENTS.get(event).add(times);
    }

    private static ByteBuffer handOffFull(ChunkQueue queue, ByteBuffer chunk) {
        FakeChunkedFile.fill(chunk, 1);
        ByteBuffer slot = queue.handOff(chunk);
        assertThat(slot).isNotNull();
        return slot;
    }

    private static void await(Future<?> future, String what) throws InterruptedException {
        try {
            future.get(WAIT_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw new AssertionError(what + " of stress.seed " + SEED, e.getCause());
        } catch (TimeoutException e) {
            AssertionError hang = new AssertionError(what + " of stress.seed " + SEED + " hangs", e);
            Thread.getAllStackTraces().forEach((thread, stack) -> {
                if (thread.getName().startsWith("stress") || thread.getName().startsWith("hotpatch")) {
                    Throwable at = new Throwable(thread + " " + thread.getState());
                    at.setStackTrace(stack);
                    hang.addSuppressed(at);
                }
            });
            throw hang;
        }
    }

    /** One file from its first chunk to its end, good or bad, and what its producer may rely on meanwhile. */
    private static final class Program {
        private final SplittableRandom random;
        private final String name;
        private final Queue<String> broken = new ConcurrentLinkedQueue<>();
        private final int bytes;
        private final boolean direct;
        private final ByteOrder order;
        private final int pace;

        private Thread producer;
        private FakeChunkedFile file;
        private ChunkQueue queue;
        private ByteBuffer buffer;
        private long nextId;

        /** The chunks that the file should consist of, oldest first, and how many of them are surely in it. */
        private final long[] ids = new long[100];

        private int handed;
        private int written;
        private int dropped;
        private long told;
        private Throwable listenerThrew;
        private Throwable seen;
        private boolean mayFail;
        private boolean interrupted;
        /** Set by a server, or the producer, as it writes a chunk. */
        private boolean interruptedByFile;

        private boolean mayBeClosed;
        /** Set by the thread that writes, before another one begins to release; visible to who finds the file released. */
        private volatile FutureTask<Throwable> closer;

        Program(long seed) {
            random = new SplittableRandom(seed);
            name = "program " + seed;
            bytes = CHUNK_BYTES[random.nextInt(CHUNK_BYTES.length)];
            direct = random.nextInt(8) == 0;
            order = random.nextInt(8) == 0 ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN;
            pace = random.nextInt(3) * 4;
        }

        void run() {
            producer = Thread.currentThread();
            file = new FakeChunkedFile(producer, random.nextInt(4) * 4, broken);
            queue = new ChunkQueue(file);
            file.hotpatchQueue(queue);
            buffer = (direct ? ByteBuffer.allocateDirect(bytes) : ByteBuffer.allocate(bytes)).order(order);
            if (random.nextInt(3) > 0) {
                file.listener = AsyncSSTableWriter.onProducer(file, (LongConsumer) this::listen);
            }
            plan();
            try {
                boolean goesOn = true;
                int steps = random.nextInt(4, 48);
                for (int i = 0; i < steps && goesOn; i++) {
                    FakeChunkedFile.pause(random.nextLong() >>> 1, pace);
                    goesOn = step();
                }
                if (goesOn && random.nextBoolean() && drain()) {
                    finish();
                }
                end();
                assertThat(broken).isEmpty();
            } catch (Throwable e) {
                AssertionError error = new AssertionError(name + ": " + broken, e);
                AsyncSSTableWriter.release(file, null);
                throw error;
            } finally {
                interrupted = Thread.interrupted();
            }
        }

        private void plan() {
            int at = random.nextInt(1, 24);
            switch (random.nextInt(8)) {
                case 0, 1 -> {
                    file.failAt = at;
                    file.failAfterwards = random.nextBoolean();
                }
                case 2 -> file.failForceAt = random.nextInt(1, 3);
                case 3 -> {
                    file.actAt = at;
                    file.action = () -> {
                        interruptedByFile = true;
                        producer.interrupt();
                    };
                }
                case 4 -> {
                    mayBeClosed = true;
                    file.actAt = at;
                    file.action = () -> {
                        closer = new FutureTask<>(() -> AsyncSSTableWriter.release(file, null));
                        THREADS.execute(closer);
                    };
                    if (random.nextBoolean()) {
                        file.failAt = at + random.nextInt(3);
                    }
                }
                default -> {}
            }
            file.failWithError = random.nextBoolean();
            mayFail = file.failAt != Integer.MAX_VALUE || file.failForceAt != Integer.MAX_VALUE;
        }

        /** Returns whether the file is still whole and open. */
        private boolean step() {
            int kind = random.nextInt(100);
            if (kind < 72) {
                return handOff();
            } else if (kind < 80) {
                return drain();
            } else if (kind < 89) {
                estimate();
            } else if (kind < 93) {
                return truncate();
            } else if (kind < 97) {
                return writeAsStock();
            } else if (kind < 99) {
                interrupted = true;
                producer.interrupt();
            } else if (random.nextInt(8) == 0) {
                LockSupport.parkNanos(1_200_000); // the server gives up waiting
            }
            return true;
        }

        private boolean handOff() {
            long id = nextId++;
            FakeChunkedFile.fill(buffer, id);
            ByteBuffer slot;
            try {
                slot = queue.handOff(buffer);
            } catch (Throwable e) {
                if (e == listenerThrew) { // which is not the queue's affair: the chunk is still ours
                    listenerThrew = null;
                    assertThat(FakeChunkedFile.idOf(buffer)).isEqualTo(id);
                    count(Event.LISTENER_THREW, 1);
                    return true;
                }
                return fail(e, Event.FAILURE_AT_HAND_OFF);
            }
            if (slot == null) {
                if (closer != null) {
                    return false;
                }
                count(Event.NO_SLOT, 1);
                checkAllWritten();
                return flush(id);
            }
            ids[handed] = id;
            handed++;
            // racy, but never less than what the queue counted as written when it took the slot
            assertThat(handed - file.count).as("in flight").isLessThanOrEqualTo(Math.max(2, WRITER_BYTES / bytes));
            assertThat(ChunkSlots.SHARED.held()).isLessThanOrEqualTo(TOTAL_BYTES);
            assertThat(slot).isNotSameAs(buffer);
            assertThat(slot.isDirect()).isEqualTo(direct);
            assertThat(slot.order()).isEqualTo(order);
            assertThat(slot.capacity()).isEqualTo(bytes);
            assertThat(slot.remaining()).isEqualTo(bytes);
            buffer = slot;
            FakeChunkedFile.fill(buffer, -1); // nobody else may be reading it
            return true;
        }

        private boolean drain() {
            try {
                if (random.nextBoolean()) {
                    AsyncSSTableWriter.drain(file);
                } else { // not for this class, so all that it does is to drain
                    FakeChunkedFile.fill(buffer, -1);
                    assertThat(AsyncSSTableWriter.handOff(file, random.nextInt(2), buffer))
                            .isNull();
                }
            } catch (Throwable e) {
                return fail(e, Event.FAILURE_AT_DRAIN);
            }
            if (closer != null) {
                return false;
            }
            checkAllWritten();
            return true;
        }

        private boolean writeAsStock() {
            return drain() && flush(nextId++);
        }

        private boolean truncate() {
            try {
                AsyncSSTableWriter.drainToTruncate(file);
            } catch (Throwable e) {
                return fail(e, Event.FAILURE_AT_DRAIN);
            }
            if (closer != null) {
                return false;
            }
            checkAllWritten();
            handed -= random.nextInt(Math.min(handed, 4) + 1);
            written = handed;
            told = Math.min(told, (long) handed * bytes);
            file.truncate(handed, bytes);
            count(Event.TRUNCATED, 1);
            return true;
        }

        /** What the producer does to a chunk where none was handed over. */
        private boolean flush(long id) {
            int before = file.begun;
            boolean whole = true;
            FakeChunkedFile.fill(buffer, id);
            try {
                file.hotpatchFlushData(buffer);
            } catch (Throwable e) {
                if (e == listenerThrew) {
                    listenerThrew = null;
                } else if (e == file.failure) { // which the queue never hears of
                    file.failure = null;
                    whole = false;
                } else {
                    throw e;
                }
            }
            assertThat(file.begun).isEqualTo(before + 1);
            if (file.count > handed) {
                ids[handed] = id;
                handed++;
            }
            checkAllWritten();
            return whole;
        }

        private void finish() {
            if (!flush(nextId++)) {
                return;
            }
            if (file.listener != null) {
                assertThat(told).as("what the listener was told last").isEqualTo((long) handed * bytes);
            }
            count(Event.FINISHED, 1);
        }

        /** To be called while nothing can be in flight. */
        private void checkAllWritten() {
            if (closer == null) {
                written = handed;
                assertThat(file.count).as("chunks written").isEqualTo(handed);
            }
            checkOrder();
        }

        private void checkOrder() {
            int count = file.count;
            assertThat(count).isBetween(written, handed);
            assertThat(Arrays.copyOf(file.ids, count)).isEqualTo(Arrays.copyOf(ids, count));
            assertThat(file.uncompressedEnd).isEqualTo((long) count * bytes);
            assertThat(file.compressedEnd).isEqualTo(compressed(count));
            assertThat(file.ended).as("writes ended").isEqualTo(file.begun);
        }

        private void estimate() {
            long estimate = AsyncSSTableWriter.estimate(-1, file);
            for (int count = written; count <= handed; count++) {
                long compressed = compressed(count);
                double ratio = count == 0 ? 1 : (double) compressed / ((long) count * bytes);
                // a failure, or a release, drops what waits behind the chunk that is being written
                int fewest = mayFail || mayBeClosed ? 0 : handed - count;
                for (int inFlight = handed - count; inFlight >= fewest; inFlight--) {
                    if (estimate == compressed + (long) (ratio * inFlight * bytes)) {
                        return;
                    }
                }
            }
            throw new AssertionError("estimate " + estimate + " with " + written + " of " + handed + " chunks known");
        }

        private long compressed(int chunks) {
            long sum = 0;
            for (int i = 0; i < chunks; i++) {
                sum += FakeChunkedFile.compressed(ids[i], bytes);
            }
            return sum;
        }

        /** Called where the file's listener would be. */
        private void listen(long end) {
            assertThat(Thread.currentThread()).isSameAs(producer);
            long onDisk = file.uncompressedEnd; // while a chunk is written it may be more, but never less
            assertThat(end).as("end that the listener is told").isBetween(told, onDisk);
            assertThat(end % bytes).isZero();
            told = end;
            count(Event.LISTENER_TOLD_AT_HAND_OFF, 1);
            if (mayBeClosed && closer == null && random.nextInt(8) == 0) { // between its slot and its hand-off
                file.actAt = Integer.MAX_VALUE;
                closer = new FutureTask<>(() -> AsyncSSTableWriter.release(file, null));
                closer.run();
            }
            if (random.nextInt(100) == 0) {
                listenerThrew = new IllegalStateException("listener");
                throw (IllegalStateException) listenerThrew;
            }
        }

        private boolean fail(Throwable thrown, Event event) {
            if (thrown != file.failure) {
                throw new AssertionError("not what the file threw: " + file.failure, thrown);
            }
            seen = thrown;
            count(event, 1);
            if (!mayBeClosed) { // it stays, however often one asks
                checkOrder();
                assertThat(caught(() -> AsyncSSTableWriter.drain(file))).isSameAs(thrown);
                assertThat(caught(() -> queue.handOff(buffer))).isSameAs(thrown);
                assertThat(AsyncSSTableWriter.estimate(-1, file)).isEqualTo(file.compressedEnd);
            }
            return false;
        }

        private void end() {
            Throwable earlier = random.nextBoolean() ? null : new IllegalStateException("earlier");
            Throwable result = AsyncSSTableWriter.release(file, earlier);
            Future<Throwable> other = closer;
            Throwable othersResult = null;
            if (other != null) {
                boolean wasInterrupted = Thread.interrupted();
                try {
                    othersResult = other.get(WAIT_SECONDS, TimeUnit.SECONDS);
                } catch (Exception e) {
                    throw new AssertionError("the thread that released the file", e);
                }
                if (wasInterrupted) {
                    producer.interrupt();
                }
                count(Event.RELEASED_BY_ANOTHER_THREAD, 1);
            }
            file.closed = true;
            boolean unseen = file.failure != null && seen == null && othersResult == null;
            if (!unseen) {
                assertThat(result).isSameAs(earlier);
            } else if (earlier == null) {
                assertThat(result).isSameAs(file.failure);
            } else {
                assertThat(result).isSameAs(earlier);
                assertThat(result.getSuppressed()).containsExactly(file.failure);
            }
            if (unseen || othersResult != null) {
                count(Event.FAILURE_AT_RELEASE, 1);
            }
            if (othersResult != null) {
                assertThat(othersResult).isSameAs(file.failure);
            }
            if (file.failure != null) {
                assertThat(file.failure.getSuppressed()).isEmpty();
            }
            checkOrder();
            dropped = handed - file.count;

            assertThat(AsyncSSTableWriter.release(file, earlier)).isSameAs(earlier);
            FakeChunkedFile.fill(buffer, -1);
            assertThat(queue.handOff(buffer)).isNull();
            AsyncSSTableWriter.drain(file);
            assertThat(AsyncSSTableWriter.estimate(-1, file)).isEqualTo(file.compressedEnd);
            assertThat(Thread.interrupted()).as("interrupted").isEqualTo(interrupted || interruptedByFile);
            countEvents();
        }

        private void countEvents() {
            count(Event.CHUNK_WRITTEN_BY_SERVER, file.byServers);
            count(Event.CHUNK_WRITTEN_BY_PRODUCER, Math.max(0, file.count - file.byServers));
            count(Event.FORCED, file.forces);
            count(Event.INTERRUPTED, interrupted || interruptedByFile ? 1 : 0);
            count(Event.RELEASED_WITH_CHUNKS_DROPPED, dropped > 0 && file.failure == null ? 1 : 0);
        }

        private static Throwable caught(Runnable task) {
            try {
                task.run();
                return null;
            } catch (Throwable e) {
                return e;
            }
        }
    }

    /** Takes half a millisecond for a chunk, and notes its end. */
    private static final class TimedFile implements ChunkedFile {
        private ChunkQueue queue;
        private final Thread producer = Thread.currentThread();
        volatile long endedNanos;
        volatile boolean waitedFor;

        @Override
        public void hotpatchFlushData(ByteBuffer chunk) {
            LockSupport.parkNanos(500_000);
            waitedFor = Thread.currentThread() != producer;
            endedNanos = System.nanoTime();
        }

        @Override
        public void hotpatchForce() {}

        @Override
        public long hotpatchCompressedEnd() {
            return 0;
        }

        @Override
        public long hotpatchUncompressedEnd() {
            return 0;
        }

        @Override
        public ChunkQueue hotpatchQueue() {
            return queue;
        }

        @Override
        public void hotpatchQueue(ChunkQueue given) {
            queue = given;
        }
    }
}
