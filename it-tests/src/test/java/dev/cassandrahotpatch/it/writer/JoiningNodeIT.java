/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A node joins one that holds all rows, takes half of them and has them streamed; cleanup drops them where they were. What
 * a pair of nodes with {@code async_sstable_writer} writes is what a stock pair writes, byte for byte.
 */
@Tag("writer")
@Timeout(600)
class JoiningNodeIT {
    private static final String TABLE = "moved";
    private static final int CHUNK_BYTES = 16 << 10;
    private static final String LZ4 = "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 16}";
    /** The node that joins must not compact what it is sent. */
    private static final String IDLE = "{'class': 'SizeTieredCompactionStrategy', 'enabled': false}";
    /** The first node keeps the tokens up to 0, the second takes those above. */
    private static final String FIRST = "initial_token: 0\n";

    private static final String SECOND = "initial_token: " + Long.MAX_VALUE + "\n";
    /** SSTables are read, cut and written anew, not copied as files. */
    private static final String SECTIONS = "stream_entire_sstables: false\nstream_throughput_outbound: 0MiB/s\n";

    @TempDir
    Path folder;

    private final List<WriterNode> nodes = new ArrayList<>();

    @AfterEach
    void stopNodes() {
        nodes.forEach(WriterNode::close);
    }

    @ParameterizedTest
    @ValueSource(strings = {"4.1.10", "6.0-alpha2"})
    void whatIsStreamedAndWhatCleanupLeavesAreTheSameFiles(String version) throws Exception {
        CompactionData data = CompactionData.of(version);
        String yaml = SECTIONS + (version.startsWith("6") ? CompactionData.NEWEST_FORMAT + "\n" : "");
        WriterNode stock = start(WriterNode.start(version, false, folder.resolve("stock"), yaml + FIRST));
        WriterNode patched = start(WriterNode.start(version, true, folder.resolve("patched"), yaml + FIRST));
        for (WriterNode node : List.of(stock, patched)) {
            CompactionData.createKeyspace(node.awaitStarted(), false);
            data.load(node, TABLE, LZ4, IDLE);
        }
        long before = size(stock);

        WriterNode stockJoined = start(stock.startBeside(folder.resolve("stock-joined"), yaml + SECOND));
        WriterNode patchedJoined = start(patched.startBeside(folder.resolve("patched-joined"), yaml + SECOND));
        for (WriterNode node : List.of(stockJoined, patchedJoined)) {
            node.awaitStarted();
        }
        SSTableFiles.assertSame("what was streamed", stockJoined.files(TABLE), patchedJoined.files(TABLE));
        assertThat(stockJoined.files(TABLE)).hasSize(CompactionData.SSTABLES);
        // streams on every core leave none to a writer thread most of the time
        assertThat(patchedJoined.metric("writer_chunks_total"))
                .as("chunks on writer threads")
                .isPositive();

        long chunks = patched.metric("writer_chunks_total");
        for (WriterNode node : List.of(stock, patched)) {
            awaitTwo(node);
            assertThat(node.storage("forceKeyspaceCleanup", 1, CompactionData.KEYSPACE, new String[] {TABLE}))
                    .as("cleanup on %s", node)
                    .isEqualTo(0);
        }
        SSTableFiles.assertSame("what cleanup has left", stock.files(TABLE), patched.files(TABLE));
        assertChunks(patched, chunks);
        assertThat(size(stock)).isBetween(before / 3, before * 2 / 3);
        System.out.println("[writer] " + version + ": of " + before + " bytes, " + size(stockJoined) + " and "
                + size(patchedJoined) + " were streamed, " + size(stock) + " and " + size(patched)
                + " are left after cleanup");

        for (WriterNode node : nodes) {
            assertThat(node.verify(true)).as("verify on %s", node).isEqualTo(0);
            data.assertReadBack(node, TABLE);
            assertThat(node.node().log().lines().filter(line -> line.startsWith("ERROR")))
                    .as("errors of %s", node)
                    .isEmpty();
        }
    }

    /** Sees that most chunks of what a node has written were written on its writer threads. */
    private static void assertChunks(WriterNode node, long before) {
        assertThat(node.metric("writer_chunks_total") - before)
                .as("chunks on writer threads of %s", node)
                .isGreaterThan(size(node) / CHUNK_BYTES / 2);
    }

    private WriterNode start(WriterNode node) {
        nodes.add(node);
        return node;
    }

    private static long size(WriterNode node) {
        return node.files(TABLE).stream()
                .mapToLong(sstable -> sstable.size("Data.db"))
                .sum();
    }

    /** Waits until a node knows that the other has joined, before which it refuses to clean up. */
    private static void awaitTwo(WriterNode node) {
        node.node()
                .await(
                        "a second node that has joined",
                        () -> Optional.of(node)
                                .filter(one -> ((Collection<?>) one.storageAttribute("LiveNodes")).size() == 2)
                                .filter(one -> ((Collection<?>) one.storageAttribute("JoiningNodes")).isEmpty()));
    }
}
