/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import static org.assertj.core.api.Assertions.assertThat;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.metadata.Node;
import dev.cassandrahotpatch.it.CassandraNode;
import dev.cassandrahotpatch.it.HotpatchTable;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.testcontainers.containers.Container.ExecResult;

/**
 * Three nodes of 4.1, of which the agent, with all patches, is rolled onto two and back, while a client writes. What stock
 * does in the same cluster, and logs, is done first.
 */
@Tag("containers")
@Timeout(900)
class MixedClusterIT {
    private static final String KEYSPACE = AcknowledgedWrites.KEYSPACE;
    private static final String TABLE = AcknowledgedWrites.TABLE;
    private static final String DATA = "/var/lib/cassandra/data/" + KEYSPACE;
    private static final int METRICS_PORT = 9600;
    /** So many a node misses at least while it is down. */
    private static final int MISSED_ROWS = 200;

    private static final int CHUNK_BYTES = AcknowledgedWrites.CHUNK_KIBIBYTES << 10;
    private static final Duration WHOLE_LIMIT = Duration.ofSeconds(60);

    /** The node that stays stock, and the two that are patched. */
    private static final int A = 0;

    private static final int B = 1;
    private static final int C = 2;
    private static final List<Integer> PATCHED = List.of(B, C);
    private static final List<Integer> NODES = List.of(A, B, C);

    private ContainerCluster cluster;
    private CqlSession cql;
    private AcknowledgedWrites writes;
    private long phaseBegun = System.nanoTime();

    @Test
    void noAcknowledgedWriteIsLostWhileTheAgentIsRolledOnAndBack() throws Exception {
        String stock = CassandraImage.V4_1.stock();
        String patched = CassandraImage.V4_1.withAgent();
        ended("images");
        try (ContainerCluster three = new ContainerCluster(3)) {
            cluster = three;
            for (int node : NODES) {
                cluster.replace(node, stock).start();
            }
            try (CqlSession session = CassandraNode.connect(cluster.address(A));
                    AcknowledgedWrites client = new AcknowledgedWrites(session)) {
                cql = session;
                writes = client;
                writes.awaitMore(MISSED_ROWS);
                ended("three stock nodes");

                Set<String> ofStock = rollStock(stock);
                rollOn(stock, patched);
                repairBothWays();
                rollBack(stock);

                writes.close();
                System.out.println("[mixed] " + writes.soFar().cardinality() + " writes were acknowledged, "
                        + writes.failed() + " failed");
                assertHolds(writes.soFar(), ConsistencyLevel.ALL, null);
                Map<String, String> complaints = cluster.complaints();
                complaints.keySet().removeAll(ofStock);
                assertThat(complaints)
                        .as("errors and warnings that stock nodes have not logged")
                        .isEmpty();
                ended("all read back");
            }
        }
    }

    /** All that follows, without the agent. */
    private Set<String> rollStock(String stock) throws InterruptedException {
        for (int node : List.of(A, B)) {
            stop(node);
            start(cluster.replace(node, stock));
        }
        repair();
        for (int node : List.of(A, B)) {
            nodetool(node, "compact", KEYSPACE);
            verifyAndScrub(node);
        }
        Map<String, String> complaints = cluster.complaints();
        complaints.forEach((where, line) -> System.out.println("[mixed] stock logs " + line));
        ended("stock nodes restarted, repaired, compacted, verified, scrubbed");
        return complaints.keySet();
    }

    /** Node C loses the files of the table on its way. */
    private void rollOn(String stock, String patched) throws InterruptedException {
        stop(A);
        start(cluster.replace(A, stock));
        for (int node : PATCHED) {
            stop(node);
            ContainerNode container = cluster.replace(node, patched)
                    .withExtraOptions(
                            "-Dcassandra.hotpatch.async_sstable_writer=true",
                            // also where streams from both other nodes leave no core idle
                            "-Dcassandra.hotpatch.async_sstable_writer.threads=2",
                            "-Dcassandra.hotpatch.prometheus.port=" + METRICS_PORT,
                            "-Dcassandra.hotpatch.prometheus.host=0.0.0.0");
            if (node == C) {
                container.withPreparation("rm -r " + DATA);
            }
            start(container);
            HotpatchTable table = container.awaitTable();
            for (String id : List.of("async_sstable_writer", "cache_capacity", "response_buffer_sizing")) {
                assertThat(table.row(id).state())
                        .as("%s of node %d: %s", id, node, table.reason(id))
                        .isEqualTo("APPLIED");
            }
        }
        ended("two nodes patched");
    }

    /** Each node lacks what was written while it was down, and node C nearly all. */
    private void repairBothWays() throws IOException {
        BitSet before = writes.soFar();
        assertThat(missing(before, writes.read(ConsistencyLevel.ONE, node(C))))
                .as("rows that node C does not have before it is repaired: it has lost its files")
                .hasSizeGreaterThan(before.cardinality() / 2);
        long chunks = chunks(C);
        repair();
        assertStreamedBothWays(A, B);
        assertStreamedBothWays(B, C);
        long sent = assertStreamedBothWays(A, C);
        assertThat(chunks(C) - chunks)
                .as("chunks that writer threads of node C have written, of %d bytes streamed from node A", sent)
                .isGreaterThan(sent / CHUNK_BYTES / 2);
        for (int node : NODES) {
            assertHolds(before, ConsistencyLevel.ONE, node(node));
        }
        ended("repaired between stock and patched");
    }

    private void rollBack(String stock) throws IOException, InterruptedException {
        for (int node : PATCHED) {
            long chunks = chunks(node);
            nodetool(node, "compact", KEYSPACE);
            assertThat(chunks(node))
                    .as("chunks that writer threads of node %d have written", node)
                    .isGreaterThan(chunks);
            List<String> written = run(node, "sh", "-c", "ls " + DATA + "/" + TABLE + "-*/*-Data.db")
                    .lines()
                    .toList();
            BitSet before = writes.soFar();
            stop(node);
            start(cluster.replace(node, stock));
            assertHolds(before, ConsistencyLevel.ONE, node(node));
            String log = verifyAndScrub(node);
            assertThat(written).isNotEmpty().allSatisfy(file -> assertVerifiedAndScrubbed(file, log));
            assertThat(log).doesNotContain("[hotpatch]");
            assertHolds(before, ConsistencyLevel.ONE, node(node));
        }
        ended("two nodes stock again, what they wrote patched is verified and scrubbed");
    }

    private void stop(int node) throws InterruptedException {
        cluster.stop(node);
        writes.awaitMore(MISSED_ROWS);
    }

    private void start(ContainerNode container) throws InterruptedException {
        container.start();
        awaitWhole();
        writes.awaitMore(MISSED_ROWS);
    }

    /** Waits until each node, as a coordinator, reaches all three. */
    private void awaitWhole() throws InterruptedException {
        long limit = System.nanoTime() + WHOLE_LIMIT.toNanos();
        for (int node : NODES) {
            while (true) {
                try {
                    cql.execute(SimpleStatement.newInstance(
                                    "SELECT value FROM " + KEYSPACE + "." + TABLE + " WHERE id = -1")
                            .setConsistencyLevel(ConsistencyLevel.ALL)
                            .setNode(node(node)));
                    break;
                } catch (DriverException e) {
                    if (System.nanoTime() > limit) {
                        throw new AssertionError("node " + node + " does not reach all three", e);
                    }
                    TimeUnit.MILLISECONDS.sleep(200);
                }
            }
        }
    }

    private void repair() {
        nodetool(A, "repair", "-full", KEYSPACE);
    }

    /** Returns the node's log, with what the two had to say. */
    private String verifyAndScrub(int node) {
        nodetool(node, "verify", "--force", "--extended-verify", KEYSPACE, TABLE);
        nodetool(node, "scrub", "--no-snapshot", KEYSPACE, TABLE);
        return cluster.container(node).getLogs();
    }

    private static void assertVerifiedAndScrubbed(String file, String log) {
        Matcher verified = Pattern.compile("Verify of .*" + file + ".* succeeded\\. All (\\d+) rows read")
                .matcher(log);
        Matcher scrubbed = Pattern.compile(
                        "Scrub of .*" + file + ".* complete: (\\d+) partitions in new sstable and 0 ")
                .matcher(log);
        assertThat(verified.find()).as("verified %s", file).isTrue();
        assertThat(scrubbed.find()).as("scrubbed %s", file).isTrue();
        System.out.println("[mixed] stock has verified and scrubbed " + verified.group(1) + " partitions of " + file);
        assertThat(scrubbed.group(1))
                .as("partitions of %s that scrub has kept", file)
                .isEqualTo(verified.group(1));
    }

    /** Returns the bytes that the first node, as it counts them, has sent to the second. */
    private long assertStreamedBothWays(int one, int other) {
        String peer = cluster.address(other).getAddress().getHostAddress() + ":7000";
        long received = 0;
        long sent = 0;
        long sentBytes = 0;
        for (Row row : cql.execute(SimpleStatement.newInstance("SELECT * FROM system_views.streaming")
                .setNode(node(one)))) {
            if (row.getList("peers", String.class).toString().contains(peer)) {
                assertThat(row.getString("status"))
                        .as(row.getFormattedContents())
                        .isEqualTo("success");
                received += row.getLong("files_received");
                sent += row.getLong("files_sent");
                sentBytes += row.getLong("bytes_sent");
            }
        }
        System.out.println("[mixed] node " + one + " has sent node " + other + " " + sent + " files, " + sentBytes
                + " bytes, and received " + received + " files");
        assertThat(List.of(sent, received))
                .as("files that node %d has sent to, and received from, node %d", one, other)
                .doesNotContain(0L);
        return sentBytes;
    }

    private void assertHolds(BitSet acknowledged, ConsistencyLevel level, Node coordinator) {
        assertThat(missing(acknowledged, writes.read(level, coordinator)))
                .as("acknowledged rows that %s does not read at %s", coordinator, level)
                .isEmpty();
    }

    private static List<Integer> missing(BitSet acknowledged, BitSet read) {
        return acknowledged.stream().filter(row -> !read.get(row)).boxed().toList();
    }

    private Node node(int node) {
        return cql.getMetadata().findNode(cluster.address(node)).orElseThrow();
    }

    private String nodetool(int node, String... arguments) {
        return printed(node, cluster.container(node).nodetool(arguments));
    }

    private String run(int node, String... command) {
        return printed(node, cluster.container(node).run(command));
    }

    private static String printed(int node, ExecResult result) {
        assertThat(result.getExitCode())
                .as("exit code on node %d: %s%s", node, result.getStdout(), result.getStderr())
                .isZero();
        return result.getStdout();
    }

    /** How many chunks writer threads of a patched node have written. */
    private long chunks(int node) throws IOException {
        String address = cluster.address(node).getAddress().getHostAddress();
        try (var in = URI.create("http://" + address + ":" + METRICS_PORT + "/metrics")
                .toURL()
                .openStream()) {
            String metrics = new String(in.readAllBytes(), StandardCharsets.UTF_8);
            Matcher chunks = Pattern.compile("^cassandra_hotpatch_writer_chunks_total (\\S+)$", Pattern.MULTILINE)
                    .matcher(metrics);
            assertThat(chunks.find()).as(metrics).isTrue();
            return (long) Double.parseDouble(chunks.group(1));
        }
    }

    private void ended(String phase) {
        long now = System.nanoTime();
        System.out.println(
                "[mixed] " + phase + ": " + Duration.ofNanos(now - phaseBegun).toSeconds() + " s");
        phaseBegun = now;
    }
}
