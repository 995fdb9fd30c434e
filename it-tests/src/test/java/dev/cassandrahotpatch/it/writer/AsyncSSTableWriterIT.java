/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cassandrahotpatch.it.CassandraRelease;
import dev.cassandrahotpatch.it.writer.DataFileWriter.Flushed;
import dev.cassandrahotpatch.it.writer.WriterProgram.Answer;
import dev.cassandrahotpatch.it.writer.WriterProgram.Run;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Stock and patched writers of the same release in one JVM, driven by the same random programs: the same bytes on disk. A
 * failure names its seed; {@code -Dwriter.seed=<seed>} runs that program alone, {@code -Dwriter.programs=<n>} sets how many.
 */
@Tag("writer")
class AsyncSSTableWriterIT {
    private static final int PROGRAMS = Integer.getInteger("writer.programs", 400);
    private static final long SEED = Long.getLong("writer.seed", new Random().nextLong());
    private static final long SMALL_POOL = 65_536;
    private static final long POOL = 4 << 20;

    @TempDir
    Path folder;

    static Stream<String> releases() {
        return Stream.of(System.getProperty("writer.releases", "4.0.19,4.1.10,5.0.9,6.0-alpha2")
                .split(","));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("releases")
    @Timeout(value = 20, unit = TimeUnit.MINUTES)
    void theBytesOnDiskAreThoseOfStock(String version) throws IOException {
        CassandraRelease release = CassandraRelease.of(version);
        WriterLoader stock = WriterLoader.stock(release);
        List<WriterLoader> patched = List.of(
                WriterLoader.woven(release, Map.of()),
                // so little that writers wait, and write what others would have written
                WriterLoader.woven(release, Map.of("writer_bytes", SMALL_POOL, "threads", 1L)),
                // and so little that some chunks get no slot
                WriterLoader.woven(release, Map.of("total_bytes", 200_000L, "force_bytes", 300_000L)));
        boolean single = System.getProperty("writer.seed") != null;
        for (int i = 0; i < (single ? 1 : PROGRAMS); i++) {
            boolean direct = version.startsWith("6") && (single ? Boolean.getBoolean("writer.direct") : i % 3 == 2);
            WriterProgram program = new WriterProgram(SEED + i, direct);
            for (int j = 0; j < patched.size(); j++) {
                if (single || j == i % patched.size()) {
                    compare(program, stock, patched.get(j), j == 1 ? SMALL_POOL : POOL);
                }
            }
        }
        for (WriterLoader loader : patched) {
            System.out.printf(
                    "%s, %d programs from seed %d: %d chunks handed over, %d written as stock does, %.1f s waited%n",
                    release,
                    PROGRAMS,
                    SEED,
                    loader.counter("chunks"),
                    loader.counter("fallbacks"),
                    loader.counter("producerWaitNanos") / 1e9);
            assertThat(loader.counter("chunks")).isPositive();
        }
        assertThat(patched.get(2).counter("fallbacks")).isPositive();
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("releases")
    @Timeout(value = 5, unit = TimeUnit.MINUTES)
    void aWriterWhoseOwnClassStaysStockWorksAsStock(String version) throws IOException {
        CassandraRelease release = CassandraRelease.of(version);
        WriterLoader stock = WriterLoader.stock(release);
        WriterLoader half =
                WriterLoader.woven(release, Map.of(), "org.apache.cassandra.io.compress.CompressedSequentialWriter");
        for (int i = 0; i < PROGRAMS / 10; i++) {
            compare(new WriterProgram(SEED + i, version.startsWith("6") && i % 2 == 0), stock, half, POOL);
        }
        assertThat(half.counter("chunks")).as("chunks handed over").isZero();
    }

    private void compare(WriterProgram program, WriterLoader stock, WriterLoader patched, long pool)
            throws IOException {
        Path stockFolder = Files.createDirectory(folder.resolve("stock"));
        Path patchedFolder = Files.createDirectory(folder.resolve("patched"));
        try {
            Run expected = program.run(stock, stockFolder);
            Run actual = program.run(patched, patchedFolder);
            if (program.end()
                    != WriterProgram.End.ABORT) { // an aborted file is garbage, and shorter with chunks dropped
                for (String component : List.of("Data.db", "CompressionInfo.db", "Digest.crc32")) {
                    assertThat(patchedFolder.resolve(component))
                            .as("%s of %s", component, program)
                            .hasSameBinaryContentAs(stockFolder.resolve(component));
                }
            }
            compareAnswers(program, expected, actual, Math.max(pool, 2L * program.chunk()));
            compareFlushes(program, expected.flushed(), actual.flushed());
            assertThat(patched.counter("slotsInUse")).as("%s", program).isZero();
            assertThat(patched.counter("slotBytes")).as("%s", program).isZero();
        } finally {
            delete(stockFolder);
            delete(patchedFolder);
        }
    }

    private static void compareAnswers(WriterProgram program, Run expected, Run actual, long pool) {
        for (int i = 0; i < expected.answers().size(); i++) {
            Answer stock = expected.answers().get(i);
            Answer patched = actual.answers().get(i);
            assertThat(patched.exact())
                    .as("%s, answer %d of %s", stock.operation(), i, program)
                    .isEqualTo(stock.exact());
            assertThat(Math.abs(patched.estimate() - stock.estimate()))
                    .as("estimate %d instead of %d, answer %d of %s", patched.estimate(), stock.estimate(), i, program)
                    .isLessThanOrEqualTo(pool);
        }
    }

    /** The listener may be told less often, but only on the producer, and only of what is on disk. */
    private static void compareFlushes(WriterProgram program, List<Flushed> expected, List<Flushed> actual) {
        Map<Long, Long> sizes = new HashMap<>();
        for (Flushed flushed : expected) {
            sizes.merge(flushed.offset(), flushed.sizeOnDisk(), Math::min);
        }
        for (Flushed flushed : actual) {
            assertThat(flushed.onProducer()).as("%s", program).isTrue();
            assertThat(sizes).as("told of %s in %s", flushed, program).containsKey(flushed.offset());
            assertThat(flushed.sizeOnDisk())
                    .as("told of %s in %s", flushed, program)
                    .isGreaterThanOrEqualTo(sizes.get(flushed.offset()));
        }
        if (!expected.isEmpty() && program.end() != WriterProgram.End.ABORT) {
            assertThat(actual.get(actual.size() - 1).offset())
                    .as("last flush of %s", program)
                    .isEqualTo(expected.get(expected.size() - 1).offset());
        }
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
        }
        Files.delete(folder);
    }
}
