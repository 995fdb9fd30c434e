/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.DataFormatException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The same SSTables, imported into a stock node and into one with {@code async_sstable_writer}, become the same files there,
 * byte for byte, whatever writes them; and every row reads as it was written. {@code -Dwriter.seed} repeats a run.
 */
@Tag("writer")
@ParameterizedClass(name = "{0}")
@EnumSource
@Timeout(300)
class SameFilesIT {
    private static final String LZ4 = "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 16}";
    private static final String ZSTD = "{'class': 'ZstdCompressor', 'chunk_length_in_kb': 64}";
    private static final String DEFLATE = "{'class': 'DeflateCompressor', 'chunk_length_in_kb': 16}";
    private static final String SIZE_TIERED = "{'class': 'SizeTieredCompactionStrategy'}";
    private static final int LEVELED_MEBIBYTES = 2;
    /** The most that a patched writer has in flight by default. */
    private static final long POOL_BYTES = 4 << 20;

    private static final String NEWEST_FORMAT = CompactionData.NEWEST_FORMAT;
    private static final String CURSORS = "org.apache.cassandra.db.compaction.CursorCompactor";

    /** How a pair of nodes is set up. */
    enum Setup {
        V4_1("4.1.10", ""),
        V6_0_CURSORS("6.0-alpha2", NEWEST_FORMAT),
        V6_0_CURSORS_DIRECT("6.0-alpha2", NEWEST_FORMAT + "\nbackground_write_disk_access_mode: direct"),
        V6_0_ITERATORS("6.0-alpha2", NEWEST_FORMAT + "\ncursor_compaction_enabled: false"),
        V6_0_BTI_DIRECT(
                "6.0-alpha2",
                NEWEST_FORMAT + "\nsstable: {selected_format: bti}\nbackground_write_disk_access_mode: direct");

        private final String version;
        private final String yaml;

        Setup(String version, String yaml) {
            this.version = version;
            this.yaml = yaml;
        }

        /** Whether compactions take 6.0's path without iterators, which is for the newest of the big formats only. */
        boolean usesCursors() {
            return this == V6_0_CURSORS || this == V6_0_CURSORS_DIRECT;
        }

        boolean is6() {
            return version.startsWith("6");
        }
    }

    @TempDir
    static Path folder;

    private static CompactionData data;
    private static WriterNode stock;
    private static WriterNode patched;

    private final Setup setup;

    SameFilesIT(Setup setup) {
        this.setup = setup;
    }

    @BeforeParameterizedClassInvocation
    static void startNodes(Setup setup) throws IOException {
        data = CompactionData.of(setup.version);
        stock = WriterNode.start(setup.version, false, folder.resolve(setup + "-stock"), setup.yaml);
        patched = WriterNode.start(setup.version, true, folder.resolve(setup + "-patched"), setup.yaml);
        for (WriterNode node : nodes()) {
            CompactionData.createKeyspace(node.awaitStarted(), false);
            if (setup.is6()) {
                node.storage("setLoggingLevel", CURSORS, "DEBUG"); // says which compactions it does
            }
        }
    }

    @AfterParameterizedClassInvocation
    static void stopNodes() {
        try {
            if (patched != null) {
                patched.awaitNoSlotInUse();
                for (WriterNode node : nodes()) {
                    assertThat(node.verify(false))
                            .as("verify of all SSTables of %s", node)
                            .isEqualTo(0);
                    assertThat(node.node().log().lines().filter(line -> line.startsWith("ERROR")))
                            .as("errors of %s", node)
                            .isEmpty();
                }
            }
        } finally {
            for (WriterNode node : nodes()) {
                node.close();
            }
            stock = null;
            patched = null;
        }
    }

    @Test
    void sizeTieredCompactionWritesTheSameFiles() {
        compactsAlike("size_tiered", LZ4, SIZE_TIERED);
        for (WriterNode node : nodes()) {
            assertThat(node.node()
                            .log()
                            .contains("Cursor compaction for table: size_tiered keyspace: " + CompactionData.KEYSPACE
                                    + " is supported"))
                    .as("cursors in %s", node)
                    .isEqualTo(setup.usesCursors());
        }
    }

    @Test
    void zstdCompressionWritesTheSameFiles() {
        compactsAlike("zstd", ZSTD, SIZE_TIERED);
    }

    @Test
    void unifiedCompactionWritesTheSameFiles() {
        assumeTrue(setup.is6(), "there is no unified compaction in 4.1");
        List<SSTableFiles> files = compactsAlike(
                "unified",
                LZ4,
                "{'class': 'UnifiedCompactionStrategy', 'base_shard_count': '4', 'target_sstable_size': '8MiB',"
                        + " 'min_sstable_size': '2MiB'}");
        assertThat(files).hasSizeGreaterThan(1);
    }

    /** LCS ends an SSTable by its size on disk, which is an estimate while chunks are in flight: the cuts may differ. */
    @Test
    void leveledCompactionWritesTheSameRowsInAsManyFiles() throws IOException, DataFormatException {
        compact(
                "leveled",
                DEFLATE,
                "{'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': " + LEVELED_MEBIBYTES + "}");
        List<SSTableFiles> ofStock = stock.files("leveled");
        List<SSTableFiles> ofPatched = patched.files("leveled");
        Path inflatedByStock = folder.resolve(setup + "-leveled-stock");
        Path inflatedByPatched = folder.resolve(setup + "-leveled-patched");
        inflate(ofStock, inflatedByStock);
        inflate(ofPatched, inflatedByPatched);
        assertThat(Files.mismatch(inflatedByStock, inflatedByPatched))
                .as("where the files of all SSTables, one after the other, differ")
                .isEqualTo(-1);
        long equal = IntStream.range(0, Math.min(ofStock.size(), ofPatched.size()))
                .filter(i -> ofStock.get(i).differences(ofPatched.get(i)).isEmpty())
                .count();
        System.out.println("[writer] " + setup + ": leveled compaction has made " + ofStock.size()
                + " SSTables in stock, " + ofPatched.size() + " in patched, " + equal + " of them are equal");
        System.out.println("[writer] sizes in stock " + sizes(ofStock) + ", in patched " + sizes(ofPatched));
        assertThat(ofStock).hasSizeGreaterThan(4);
        assertThat(Math.abs(ofStock.size() - ofPatched.size())).isLessThanOrEqualTo(1);
        assertThat(sizes(ofPatched))
                .allSatisfy(size -> assertThat(size).isLessThan(Collections.max(sizes(ofStock)) + POOL_BYTES));
        data.assertReadBack(patched, "leveled");
    }

    /**
     * Stock scrub takes partitions with range tombstones for corrupt, gives them up and goes back to where they began: the
     * files that it shortens so often must be the same, too.
     */
    @Test
    void scrubWritesTheSameFilesWhenItGivesPartitionsUp() {
        load("scrubbed", LZ4, SIZE_TIERED);
        for (WriterNode node : nodes()) {
            assertDone(node, "scrub", true, true, true, false, 1, CompactionData.KEYSPACE, new String[] {"scrubbed"});
        }
        assertSame("scrubbed");
        if (setup.is6()) { // whose verify finds fault, on the stock node, with what its own scrub has left
            for (WriterNode node : nodes()) {
                node.execute("DROP TABLE " + CompactionData.KEYSPACE + ".scrubbed");
            }
        }
    }

    @Test
    void whatRewritesSSTablesWritesTheSameFiles() {
        String[] table = {"rewritten"};
        load("rewritten", LZ4, SIZE_TIERED);
        for (WriterNode node : nodes()) {
            // without tombstones, scrub keeps all partitions
            node.execute("ALTER TABLE " + CompactionData.KEYSPACE + ".rewritten WITH gc_grace_seconds = 0");
            node.compact("rewritten");
        }
        assertSame("rewritten");
        for (WriterNode node : nodes()) {
            assertDone(node, "scrub", true, false, true, false, 1, CompactionData.KEYSPACE, table);
        }
        assertSame("rewritten");
        for (WriterNode node : nodes()) {
            assertDone(node, "upgradeSSTables", CompactionData.KEYSPACE, false, 1, table);
        }
        assertSame("rewritten");
        for (WriterNode node : nodes()) {
            assertDone(node, "forceKeyspaceCleanup", 1, CompactionData.KEYSPACE, table);
        }
        assertSame("rewritten");
        for (WriterNode node : nodes()) {
            data.assertReadBack(node, "rewritten");
        }
    }

    /** Calls what says by 0 that it has done it to every SSTable. */
    private static void assertDone(WriterNode node, String operation, Object... arguments) {
        assertThat(node.storage(operation, arguments))
                .as("%s on %s", operation, node)
                .isEqualTo(0);
    }

    @Test
    void indexesThatAreBuiltAndCompactedFindTheSameRows() {
        load("indexed", LZ4, SIZE_TIERED);
        for (WriterNode node : nodes()) {
            node.execute("CREATE INDEX by_name ON " + CompactionData.KEYSPACE + ".indexed (name)");
            assertIndexed(node, "indexed", "by_name");
            node.compact("indexed");
            assertIndexed(node, "indexed", "by_name");
            data.assertReadBack(node, "indexed");
        }
    }

    @Test
    void storageAttachedIndexesThatAreBuiltAndCompactedFindTheSameRows() {
        assumeTrue(setup.is6(), "there are no storage-attached indexes in 4.1");
        load("attached", LZ4, SIZE_TIERED);
        for (WriterNode node : nodes()) {
            node.execute("CREATE CUSTOM INDEX attached_by_name ON " + CompactionData.KEYSPACE
                    + ".attached (name) USING 'StorageAttachedIndex'");
            assertIndexed(node, "attached", "attached_by_name");
            node.compact("attached");
            assertIndexed(node, "attached", "attached_by_name");
            data.assertReadBack(node, "attached");
        }
    }

    private static void assertIndexed(WriterNode node, String table, String index) {
        node.node()
                .await(
                        "the index on " + table,
                        () -> Optional.ofNullable(node.node()
                                .cql()
                                .execute(
                                        "SELECT index_name FROM system.\"IndexInfo\" WHERE table_name = ? AND index_name = ?",
                                        CompactionData.KEYSPACE,
                                        index)
                                .one()));
        for (int i = 0; i < CompactionData.NAMES; i += 7) {
            String name = "name" + i;
            long found = node.node()
                    .cql()
                    .execute("SELECT count(*) FROM " + CompactionData.KEYSPACE + "." + table + " WHERE name = ?", name)
                    .one()
                    .getLong(0);
            assertThat(found).as("%s in %s of %s", name, table, node).isEqualTo(data.rowsWithName(name));
        }
    }

    private List<SSTableFiles> compactsAlike(String table, String compression, String compaction) {
        compact(table, compression, compaction);
        List<SSTableFiles> files = assertSame(table);
        data.assertReadBack(patched, table);
        return files;
    }

    /** Compacts the SSTables into a table on both nodes; sees that the patched one has done so on its writer threads. */
    private void compact(String table, String compression, String compaction) {
        load(table, compression, compaction);
        stock.compact(table);
        long before = patched.metric("writer_chunks_total");
        patched.compact(table);
        long chunks = patched.metric("writer_chunks_total") - before;
        long written =
                sizes(patched.files(table)).stream().mapToLong(size -> size).sum();
        System.out.println("[writer] " + setup + ": " + table + ", " + written + " bytes, " + chunks
                + " chunks on writer threads, " + patched.metric("writer_fallbacks_total") + " fallbacks so far");
        assertThat(chunks).as("chunks on writer threads").isGreaterThan(written / (64 << 10) / 2);
    }

    private static void load(String table, String compression, String compaction) {
        for (WriterNode node : nodes()) {
            data.load(node, table, compression, compaction);
        }
    }

    private static List<SSTableFiles> assertSame(String table) {
        List<SSTableFiles> ofPatched = patched.files(table);
        SSTableFiles.assertSame(table, stock.files(table), ofPatched);
        return ofPatched;
    }

    private static List<Long> sizes(List<SSTableFiles> sstables) {
        return sstables.stream().map(sstable -> sstable.size("Data.db")).toList();
    }

    private static void inflate(List<SSTableFiles> sstables, Path to) throws IOException, DataFormatException {
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(to))) {
            for (SSTableFiles sstable : sstables) {
                sstable.inflateTo(out);
            }
        }
    }

    private static List<WriterNode> nodes() {
        return Stream.of(stock, patched).filter(Objects::nonNull).toList();
    }
}
