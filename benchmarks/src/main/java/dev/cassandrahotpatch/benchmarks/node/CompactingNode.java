/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import dev.cassandrahotpatch.it.CassandraNode;
import dev.cassandrahotpatch.it.CassandraRelease;
import dev.cassandrahotpatch.it.Measurement.Variant;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/**
 * A node, stock or with {@code async_sstable_writer}, that times its compactions and flushes, each on a new table and without a
 * throttle. To be used by one thread.
 */
final class CompactingNode implements AutoCloseable {
    private static final String STORAGE = "org.apache.cassandra.db:type=StorageService";
    private static final String PATCH = "async_sstable_writer";
    private static final String KEYSPACE = "bench";
    private static final int FLUSHED_PARTITIONS = 4_000;

    private final CassandraNode node;
    private final Path folder;
    private final Path data;
    private int tables;
    private String table;

    /** Starts a node that keeps its data below a folder, and waits for it. */
    CompactingNode(CassandraRelease release, Variant variant, Path parent) {
        folder = parent.resolve("node-" + ProcessHandle.current().pid() + "-" + variant);
        data = folder.resolve("data");
        CassandraNode.Builder builder = PatchedNode.of(release, variant, PATCH)
                .heap("2g")
                .yaml("data_file_directories: ['" + data + "']")
                .yaml("compaction_throughput: 0MiB/s")
                .yaml("concurrent_compactors: " + SSTables.COUNT)
                // one SSTable is one memtable, however large
                .yaml("memtable_allocation_type: offheap_objects")
                .yaml("memtable_offheap_space: 3GiB")
                .yaml("memtable_heap_space: 1GiB")
                .yaml("memtable_cleanup_threshold: 0.9")
                .yaml("batch_size_warn_threshold: 1MiB")
                .yaml("batch_size_fail_threshold: 1MiB")
                .yaml("write_request_timeout: 60s");
        if (release.version().startsWith("6.")) {
            builder.yaml("storage_compatibility_mode: NONE"); // its own format, which it compacts by cursors
        }
        node = PatchedNode.awaitStarted(builder.start(), variant, PATCH);
        node.cql()
                .execute("CREATE KEYSPACE " + KEYSPACE
                        + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
                        + " AND durable_writes = false");
    }

    CassandraNode node() {
        return node;
    }

    /** The CPU time that the process has had. */
    Duration cpuTime() {
        return ProcessHandle.of(node.pid())
                .orElseThrow()
                .info()
                .totalCpuDuration()
                .orElseThrow();
    }

    /** Makes the table anew, without any compaction but those asked for. */
    void createTable(String compressor) {
        if (table != null) {
            node.cql().execute("DROP TABLE " + KEYSPACE + "." + table);
        }
        table = "wide" + ++tables; // nothing of the one before can be met under another name
        node.cql()
                .execute(
                        "CREATE TABLE " + KEYSPACE + "." + table + SSTables.COLUMNS + " WITH compression = {'class': '"
                                + compressor
                                + "', 'chunk_length_in_kb': 16} AND compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}");
    }

    /** Compacts SSTables into one. */
    Duration compact(SSTables sstables, String compressor) throws IOException {
        load(sstables, compressor);
        return timed(() -> node.invoke(STORAGE, "forceKeyspaceCompaction", false, KEYSPACE, new String[] {table}));
    }

    /** Compacts every SSTable into one of its own, all at the same time. */
    Duration compactEach(SSTables sstables, String compressor) throws IOException {
        load(sstables, compressor);
        return timed(() -> node.invoke(
                STORAGE, "upgradeSSTables", KEYSPACE, false, Long.MAX_VALUE, SSTables.COUNT, new String[] {table}));
    }

    /** Flushes a memtable that has just been filled. */
    Duration flush(String compressor) throws InterruptedException {
        createTable(compressor);
        writeRows(FLUSHED_PARTITIONS, 0);
        return timed(this::flushTable);
    }

    /** Writes rows of the first so many partitions, and waits until the node has them. */
    void writeRows(int partitions, int sstable) throws InterruptedException {
        SSTables.writeRows(node.cql(), KEYSPACE + "." + table, partitions, sstable);
    }

    void flushTable() {
        node.invoke(STORAGE, "forceKeyspaceFlush", KEYSPACE, new String[] {table});
    }

    private void load(SSTables sstables, String compressor) throws IOException {
        createTable(compressor);
        Path links = folder.resolve("import").resolve(KEYSPACE).resolve(table); // 6.0 sees no others
        sstables.linkInto(links);
        boolean copy = false;
        List<?> failed = (List<?>) node.invoke(
                "org.apache.cassandra.db:type=ColumnFamilies,keyspace=" + KEYSPACE + ",columnfamily=" + table,
                "importNewSSTables",
                Set.of(links.toString()),
                false,
                false,
                false,
                false,
                false,
                false,
                copy);
        if (!failed.isEmpty()) {
            throw new IllegalStateException(node + " has not imported " + failed);
        }
    }

    private static Duration timed(Runnable work) {
        long began = System.nanoTime();
        work.run();
        return Duration.ofNanos(System.nanoTime() - began);
    }

    /** The checksums of all data files that the table has, once what has been compacted is gone. */
    List<String> digests() {
        return node.await("an end of all transactions in " + tableFolder(), this::settledDigests);
    }

    private Optional<List<String>> settledDigests() {
        try (Stream<Path> list = Files.list(tableFolder())) {
            List<Path> files = list.toList();
            if (files.stream().anyMatch(file -> file.toString().contains("_txn_"))) {
                return Optional.empty();
            }
            List<String> digests = files.stream()
                    .filter(file -> file.toString().endsWith("-Digest.crc32"))
                    .map(CompactingNode::text)
                    .sorted()
                    .toList();
            if (digests.isEmpty()) {
                throw new IllegalStateException(node + " has no SSTables of " + table);
            }
            return Optional.of(digests);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String text(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Where the table's SSTables are. */
    Path tableFolder() {
        try (Stream<Path> folders = Files.list(data.resolve(KEYSPACE))) {
            return folders.filter(
                            candidate -> candidate.getFileName().toString().startsWith(table + "-"))
                    .findFirst()
                    .orElseThrow(() -> new IllegalStateException(node + " has no folder for " + table));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Stops the node and deletes what it has made. */
    @Override
    public void close() {
        node.close();
        try (Stream<Path> paths = Files.walk(folder)) {
            for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("can't delete " + folder, e);
        }
    }
}
