/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchStatementBuilder;
import com.datastax.oss.driver.api.core.cql.BatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import dev.cassandrahotpatch.it.CassandraRelease;
import dev.cassandrahotpatch.it.Measurement.Variant;
import dev.cassandrahotpatch.it.Requests;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.stream.Stream;

/**
 * Eight SSTables in a folder, each with some rows of every partition: more than 1 GiB in all, compressed, in rows of about 250
 * bytes. They are a function of a seed.
 */
final class SSTables {
    static final int COUNT = 8;
    static final String COLUMNS = " (id int, row int, value blob, PRIMARY KEY (id, row))";

    private static final int PARTITIONS = 9_000;
    private static final int ROWS = 100; // of each partition, in each SSTable
    private static final int VALUE_BYTES = 225;
    private static final int NOISE_BYTES = 110;
    private static final int VALUES = 20_000;
    private static final int IN_FLIGHT = 32;
    private static final long TIMESTAMP = 1_700_000_000_000_000L;
    private static final long SEED = 21655;

    private final Path folder;
    private final int partitions;

    private SSTables(Path folder, int partitions) {
        this.folder = folder;
        this.partitions = partitions;
    }

    /**
     * Has a stock node write them; takes them as they are if they have been written before.
     *
     * @param parent the folder in which they are to have a folder
     * @param whole whether all are wanted, or an eighth of the partitions
     */
    static SSTables write(CassandraRelease release, Path parent, boolean whole)
            throws IOException, InterruptedException {
        int partitions = whole ? PARTITIONS : PARTITIONS / 8;
        Path folder = parent.resolve("sstables-" + release.version() + "-" + partitions);
        SSTables sstables = new SSTables(folder, partitions);
        if (!Files.exists(folder)) {
            Path unfinished =
                    parent.resolve("unfinished-" + ProcessHandle.current().pid());
            Files.createDirectories(unfinished);
            try (CompactingNode node = new CompactingNode(release, Variant.STOCK, parent)) {
                node.createTable("LZ4Compressor");
                for (int sstable = 0; sstable < COUNT; sstable++) {
                    node.writeRows(partitions, sstable);
                    node.flushTable();
                }
                link(node.tableFolder(), unfinished);
            }
            Files.move(unfinished, folder);
        }
        if (sstables.dataFiles().size() != COUNT) {
            throw new IllegalStateException(folder + " has not " + COUNT + " SSTables but " + sstables.dataFiles());
        }
        return sstables;
    }

    /** Links the files into another folder. */
    void linkInto(Path other) throws IOException {
        Files.createDirectories(other);
        link(folder, other);
    }

    private static void link(Path from, Path to) throws IOException {
        try (Stream<Path> files = Files.list(from)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                Files.createLink(to.resolve(file.getFileName()), file);
            }
        }
    }

    /** Writes rows of the first so many partitions, and waits until the node has them. */
    static void writeRows(CqlSession cql, String table, int partitions, int sstable) throws InterruptedException {
        PreparedStatement insert = cql.prepare("INSERT INTO " + table + " (id, row, value) VALUES (?, ?, ?)");
        Random random = new Random(SEED + sstable);
        ByteBuffer[] values = Stream.generate(() -> value(random)).limit(VALUES).toArray(ByteBuffer[]::new);
        Requests writes = new Requests(IN_FLIGHT);
        for (int id = 0; id < partitions; id++) {
            BatchStatementBuilder batch =
                    BatchStatement.builder(BatchType.UNLOGGED).setQueryTimestamp(TIMESTAMP);
            for (int i = 0; i < ROWS; i++) {
                batch.addStatement(insert.bind(id, i * COUNT + sstable, values[random.nextInt(VALUES)]));
            }
            writes.send(() -> cql.executeAsync(batch.build()));
        }
        writes.awaitAnswers();
    }

    /** Some of it is as good as random, the rest compresses well. */
    private static ByteBuffer value(Random random) {
        byte[] noise = new byte[NOISE_BYTES];
        random.nextBytes(noise);
        String value = Base64.getEncoder().encodeToString(noise) + " and what compresses, ".repeat(VALUE_BYTES / 20);
        return ByteBuffer.wrap(value.substring(0, VALUE_BYTES).getBytes(StandardCharsets.US_ASCII));
    }

    private List<Path> dataFiles() {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.toString().endsWith("-Data.db")).toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Override
    public String toString() {
        long bytes =
                dataFiles().stream().mapToLong(file -> file.toFile().length()).sum();
        long rows = (long) COUNT * partitions * ROWS;
        return String.format(
                Locale.ROOT, "%d SSTables of %,d rows, %d MiB compressed, in all", COUNT, rows, bytes >> 20);
    }
}
