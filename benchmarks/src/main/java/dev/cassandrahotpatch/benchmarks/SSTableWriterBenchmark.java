/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import dev.cassandrahotpatch.runtime.AsyncSSTableWriterCounters;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ClusteringComparator;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.io.compress.CompressedSequentialWriter;
import org.apache.cassandra.io.sstable.metadata.MetadataCollector;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.io.util.SequentialWriterOption;
import org.apache.cassandra.schema.CompressionParams;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * {@code async_sstable_writer}: 4.1's own {@code CompressedSequentialWriter}, from its constructor to the finished file. The
 * producer does some work of its own for every row (a checksum of it, four times over, stands in for merging), since a
 * writer that is given nothing but copies would be all that there is to wait for.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
public class SSTableWriterBenchmark {
    private static final int FILE_BYTES = 16 << 20;
    private static final int ROW_BYTES = 250;
    private static final int ROWS = 4_096;
    private static final int ROUNDS_OF_WORK = 4;
    private static final long SEED = 21655;

    /** With chunks of 16 KiB. */
    @Param({"LZ4", "Zstd", "Snappy", "Deflate", "Noop"})
    public String compressor;

    private final byte[][] rows = new byte[ROWS][ROW_BYTES];
    private CompressionParams compression;
    private Path folder;

    /** Makes rows that compress to about a half. */
    @Setup
    public void open() throws IOException {
        DatabaseDescriptor.clientInitialization(false);
        compression = CompressionParams.fromMap(Map.of("class", compressor + "Compressor", "chunk_length_in_kb", "16"));
        folder = Files.createTempDirectory("sstable-writer-benchmark");
        Random random = new Random(SEED);
        for (byte[] row : rows) {
            for (int i = 0; i < ROW_BYTES; i++) {
                row[i] = (byte) ('a' + random.nextInt(i % 4 == 0 ? 26 : 2));
            }
        }
    }

    /** Deletes the files, and makes sure that it was the patched code that ran wherever the agent is. */
    @TearDown
    public void close() throws IOException {
        deleteFiles();
        Files.delete(folder);
        if (Boolean.getBoolean("cassandra.hotpatch.async_sstable_writer") && AsyncSSTableWriterCounters.chunks() == 0) {
            throw new IllegalStateException("no chunk was handed over: the patch does not act");
        }
    }

    private void deleteFiles() {
        try {
            for (String component : List.of("Data.db", "CompressionInfo.db", "Digest.crc32")) {
                Files.deleteIfExists(folder.resolve(component));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Writes 16 MiB. */
    @Benchmark
    public long writeFile() throws IOException {
        deleteFiles();
        MetadataCollector collector =
                new MetadataCollector(new ClusteringComparator(List.<AbstractType<?>>of()), new UUID(0, 1));
        long work = 0;
        try (CompressedSequentialWriter writer = new CompressedSequentialWriter(
                file("Data.db"),
                file("CompressionInfo.db").path(),
                file("Digest.crc32"),
                SequentialWriterOption.DEFAULT,
                compression,
                collector)) {
            for (int at = 0; writer.position() < FILE_BYTES; at = at + 1 == ROWS ? 0 : at + 1) {
                byte[] row = rows[at];
                for (int round = 0; round < ROUNDS_OF_WORK; round++) {
                    for (byte value : row) {
                        work = work * 31 + value;
                    }
                }
                writer.write(ByteBuffer.wrap(row));
            }
            writer.finish();
        }
        return work;
    }

    private File file(String component) {
        return new File(folder.resolve(component));
    }
}
