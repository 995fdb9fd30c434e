/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.cassandrahotpatch.it.CassandraRelease;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What goes wrong under a patched writer comes out as under a stock one, and leaves nothing behind. */
@ParameterizedClass(name = "{0}")
@MethodSource("writers")
@Timeout(value = 2, unit = TimeUnit.MINUTES, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("writer")
class AsyncSSTableWriterFaultsIT {
    private static final int CHUNK = 16 << 10;
    private static final Map<String, String> LZ4 = Map.of("class", "LZ4Compressor", "chunk_length_in_kb", "16");

    /** One of the writers that the patch changes. */
    record Writer(String version, boolean direct) {
        @Override
        public String toString() {
            return version + (direct ? " direct" : "");
        }
    }

    @Parameter
    Writer kind;

    @TempDir
    Path folder;

    static Stream<Writer> writers() {
        return Stream.concat(
                Stream.of(System.getProperty("writer.releases", "4.0.19,4.1.10,5.0.9,6.0-alpha2")
                                .split(","))
                        .map(version -> new Writer(version, false)),
                Stream.of(new Writer("6.0-alpha2", true)));
    }

    private WriterLoader patched;

    private WriterLoader stock() {
        return WriterLoader.stock(CassandraRelease.of(kind.version()));
    }

    private WriterLoader patched(Map<String, Long> settings) {
        patched = WriterLoader.woven(CassandraRelease.of(kind.version()), settings);
        return patched;
    }

    @AfterEach
    void nothingIsLeft() {
        if (patched != null) {
            assertThat(patched.counter("slotsInUse")).isZero();
            assertThat(patched.counter("slotBytes")).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 10, 41})
    void anIoErrorInAnyWriteSurfacesOnTheProducerWithStocksType(int nth) throws IOException {
        Throwable expected = firstFailure(open(stock(), "stock"), nth, AsyncSSTableWriterFaultsIT::noSpace);
        Throwable actual = firstFailure(open(patched(Map.of()), "patched"), nth, AsyncSSTableWriterFaultsIT::noSpace);

        assertThat(actual.getClass().getName()).isEqualTo(expected.getClass().getName());
        assertThat(actual.getCause().getMessage()).isEqualTo(expected.getCause().getMessage());
    }

    @Test
    void anErrorOrARuntimeExceptionInTheWriterStaysWhatItIs() throws IOException {
        for (Throwable thrown : List.of(new IllegalStateException("injected"), new OutOfMemoryError("injected"))) {
            Throwable failure = firstFailure(open(patched(Map.of()), "patched"), 5, () -> rethrow(thrown));
            assertThat(failure).isSameAs(thrown);
            assertThat(patched.counter("slotsInUse")).isZero();
            Files.delete(folder.resolve("patched/Data.db"));
            Files.delete(folder.resolve("patched"));
        }
        // the thread that met it, or another one, goes on with other files
        assertSameBytes(200);
        assertThat(patched.counter("chunks")).isGreaterThan(150);
    }

    @Test
    void afterAFailureNothingThatCompletesTheFileSucceeds() throws IOException {
        DataFileWriter writer = open(patched(Map.of()), "patched");
        writer.failAt(2, AsyncSSTableWriterFaultsIT::noSpace);
        assertThat(catchThrowable(() -> writeChunks(writer, 2000))).isNotNull();
        assertThat(catchThrowable(() -> writer.call("sync"))).isNotNull();
        assertThat(catchThrowable(() -> writer.call("prepareToCommit"))).isNotNull();
        assertThat(writer.abort()).as("it has been seen").isNull();
        assertThat(folder.resolve("patched/CompressionInfo.db")).doesNotExist();
    }

    @Test
    void aFailureThatNobodyHasSeenComesOutOfTheAbort() throws Exception {
        DataFileWriter writer = open(patched(Map.of()), "patched");
        FaultyChannel channel = writer.failAt(1, AsyncSSTableWriterFaultsIT::noSpace);
        boolean seen = false;
        try {
            writeChunks(writer, kind.direct() ? 200 : 2);
            channel.awaitFault();
        } catch (Error e) { // the direct writer buffers, so that its first write may come early or late
            seen = true;
        }
        Throwable accumulated = writer.abort();
        assertThat(seen || accumulated.getClass().getSimpleName().equals("FSWriteError"))
                .isTrue();
    }

    @Test
    void aStalledDiskStallsTheProducerAndAnAbortButNoLongerThanItLasts() throws Exception {
        CountDownLatch stall = new CountDownLatch(1);
        DataFileWriter writer = open(patched(Map.of()), "patched");
        FaultyChannel channel = writer.failAt(1, () -> awaitUninterruptibly(stall));
        AtomicReference<Throwable> outcome = new AtomicReference<>();
        Thread producer = new Thread(() -> outcome.set(catchThrowable(() -> writeChunks(writer, 2000))));
        producer.start();
        channel.awaitFault();
        producer.interrupt(); // must neither end the wait nor get lost
        Thread aborter = new Thread(writer::abort);
        aborter.start();
        aborter.join(300);
        assertThat(aborter.isAlive()).as("the abort waits for the write").isTrue();
        stall.countDown();
        aborter.join();
        producer.join();
    }

    @Test
    void anInterruptOfTheProducerEndsAsInStock() throws IOException {
        Throwable expected = interrupted(open(stock(), "stock"));
        Throwable actual = interrupted(open(patched(Map.of()), "patched"));
        assertThat(actual.getClass().getName()).isEqualTo(expected.getClass().getName());
        assertThat(actual).hasRootCauseInstanceOf(ClosedByInterruptException.class);
    }

    private Throwable interrupted(DataFileWriter writer) {
        writeChunks(writer, 20);
        Thread.currentThread().interrupt();
        try {
            return catchThrowable(() -> writeChunks(writer, 200));
        } finally {
            assertThat(Thread.interrupted())
                    .as("the interrupt is still to be seen")
                    .isTrue();
            assertThat(writer.abort()).isNull();
        }
    }

    @Test
    void withoutAWriterThreadTheProducerWritesTheSameBytes() throws Exception {
        WriterLoader loader = patched(Map.of());
        var threads = loader.load("dev.cassandrahotpatch.runtime.ChunkThreads").getDeclaredField("THREADS");
        threads.setAccessible(true);
        ((ThreadPoolExecutor) threads.get(null)).shutdown();

        assertSameBytes(500);
        assertThat(loader.counter("chunks")).isGreaterThan(400);
    }

    @Test
    void withoutOffHeapMemoryTheProducerWritesTheSameBytes() throws Exception {
        WriterLoader loader = patched(Map.of());
        DataFileWriter expected = open(stock(), "stock");
        DataFileWriter writer = open(loader, "patched");
        writeChunks(expected, 2); // what the JDK keeps for each thread that writes is there before memory runs out
        List<ByteBuffer> hog = new ArrayList<>();
        try {
            for (int size : new int[] {64 << 20, 1 << 20, CHUNK}) { // each time the JVM is out, it takes its time
                hog(hog, size);
            }
            writeChunks(writer, 100);
        } finally {
            hog.clear();
            System.gc();
        }
        assertThat(loader.counter("fallbacks")).isPositive();
        writer.call("finish");
        writeChunks(expected, 98, 2);
        expected.call("finish");
        assertSameFiles();
    }

    private static void hog(List<ByteBuffer> hog, int size) {
        try {
            while (true) {
                hog.add(ByteBuffer.allocateDirect(size));
            }
        } catch (OutOfMemoryError e) {
            assertThat(e).hasMessageContaining("direct buffer memory");
        }
    }

    @Test
    void theGateMayCloseWhileAWriterIsAtWork() throws IOException {
        WriterLoader loader = patched(Map.of());
        DataFileWriter writer = open(loader, "patched");
        writeChunks(writer, 100);
        loader.call("dev.cassandrahotpatch.runtime.AsyncSSTableWriter", "close");
        writeChunks(writer, 100, 100);
        writer.call("finish");
        DataFileWriter expected = open(stock(), "stock");
        writeChunks(expected, 200);
        expected.call("finish");
        assertSameFiles();
        assertThat(loader.counter("chunks")).isBetween(99L, 100L);
    }

    @Test
    void idleWritersHoldNoSlotAndTheThreadsEnd() throws Exception {
        WriterLoader loader = patched(Map.of());
        List<DataFileWriter> writers = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            writers.add(open(loader, "idle" + i));
            writeChunks(writers.get(i), 5);
        }
        for (int i = 0; loader.counter("slotsInUse") > 0 && i < 1000; i++) {
            Thread.sleep(10);
        }
        assertThat(loader.counter("slotsInUse")).isZero();
        for (int i = 0; i < 1500 && writerThreads() > 0; i++) {
            Thread.sleep(10);
        }
        assertThat(writerThreads()).isZero();
        writers.forEach(DataFileWriter::abort);
    }

    private static long writerThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("hotpatch-sstable-writer"))
                .count();
    }

    @Test
    void manyWritersAtOnceOverOneSmallPoolLeaveTheBytesOfStock() throws Exception {
        WriterLoader stock = stock();
        WriterLoader loader = patched(Map.of("total_bytes", 1L << 20, "threads", 2L));
        ExecutorService producers = Executors.newFixedThreadPool(8);
        long seed = new Random().nextLong();
        try {
            List<Future<Void>> runs = new ArrayList<>();
            for (int i = 0; i < 96; i++) {
                WriterProgram program = new WriterProgram(seed + i, kind.direct());
                Path ours = Files.createDirectory(folder.resolve("program" + i));
                runs.add(producers.submit((Callable<Void>) () -> {
                    Path expected = Files.createDirectory(ours.resolve("stock"));
                    Path actual = Files.createDirectory(ours.resolve("patched"));
                    program.run(stock, expected);
                    program.run(loader, actual);
                    if (program.end() != WriterProgram.End.ABORT) {
                        assertSameFiles(program.toString(), expected, actual);
                    }
                    return null;
                }));
            }
            for (Future<Void> run : runs) {
                run.get();
            }
        } finally {
            producers.shutdownNow();
        }
    }

    private void assertSameBytes(int chunks) throws IOException {
        for (var loader : Map.of("stock", stock(), "patched", patched).entrySet()) {
            DataFileWriter writer = open(loader.getValue(), loader.getKey());
            writeChunks(writer, chunks);
            writer.call("finish");
        }
        assertSameFiles();
    }

    private void assertSameFiles() {
        assertSameFiles("", folder.resolve("stock"), folder.resolve("patched"));
    }

    private static void assertSameFiles(String what, Path expected, Path actual) {
        for (String component : List.of("Data.db", "CompressionInfo.db", "Digest.crc32")) {
            assertThat(actual.resolve(component)).as(what).hasSameBinaryContentAs(expected.resolve(component));
        }
    }

    private DataFileWriter open(WriterLoader loader, String name) throws IOException {
        DataFileWriter writer =
                new DataFileWriter(loader, Files.createDirectory(folder.resolve(name)), LZ4, kind.direct());
        writer.listen();
        return writer;
    }

    /** Writes until something is thrown; the writer is aborted then, and holds nothing any more. */
    private static Throwable firstFailure(DataFileWriter writer, int nth, FaultyChannel.Fault fault) {
        writer.failAt(nth, fault);
        Throwable failure = catchThrowable(() -> {
            writeChunks(writer, 4000);
            writer.call("prepareToCommit");
        });
        assertThat(failure).isNotNull();
        assertThat(writer.abort()).as("it has been seen").isNull();
        return failure;
    }

    private static void writeChunks(DataFileWriter writer, int chunks) {
        writeChunks(writer, chunks, 0);
    }

    /** Noise, so that the direct writer's buffer fills, too. */
    private static void writeChunks(DataFileWriter writer, int chunks, int seed) {
        byte[] bytes = new byte[CHUNK];
        try {
            for (int i = 0; i < chunks; i++) {
                new Random(seed + i).nextBytes(bytes);
                writer.output().write(bytes);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void noSpace() throws IOException {
        throw new IOException("No space left on device (injected)");
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
        boolean interrupted = false;
        while (true) {
            try {
                latch.await();
                break;
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> void rethrow(Throwable thrown) throws T {
        throw (T) thrown;
    }
}
