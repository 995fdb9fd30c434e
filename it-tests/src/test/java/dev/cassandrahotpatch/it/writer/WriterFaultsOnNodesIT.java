/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import static org.assertj.core.api.Assertions.assertThat;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What goes wrong around a node with {@code async_sstable_writer} comes out as it does on a stock node that has the same happen
 * to it: the same reaction, the same kinds of errors in the log, the same files left, the same rows after a restart.
 */
@Tag("writer-faults")
@Timeout(240)
class WriterFaultsOnNodesIT {
    private static final String LZ4 = "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 16}";
    private static final String SIZE_TIERED = "{'class': 'SizeTieredCompactionStrategy'}";
    private static final int SLOW_MEBIBYTES = 8;
    private static final int STOP_SECONDS = 60;
    /** As an operator would have it; and the commit log on disk at once, so that a kill loses nothing acknowledged. */
    private static final String YAML = "disk_failure_policy: stop\ncommitlog_sync_period_in_ms: 50\n";

    private static final Pattern THROWN = Pattern.compile(
            "^(?:Caused by: |\\s*Suppressed: )?((?:[a-z]\\w*\\.)+\\w*(?:Exception|Error))\\b", Pattern.MULTILINE);
    private static final Pattern LOGGED_ERROR =
            Pattern.compile("^ERROR \\[([A-Za-z-]+)[^\\]]*\\] \\S+ \\S+ (\\w+\\.java):\\d+", Pattern.MULTILINE);

    @TempDir
    Path folder;

    /**
     * What a fault leads to.
     *
     * @param failed whether what was asked of the node failed
     * @param serves whether the node still takes clients
     * @param gossips whether the node still is a member of its cluster
     * @param errors the classes that logged an error, with the kind of their thread
     * @param thrown the classes of the exceptions in the log
     * @param left the files of the table, without their numbers
     */
    private record Outcome(
            boolean failed,
            boolean serves,
            boolean gossips,
            SortedSet<String> errors,
            SortedSet<String> thrown,
            List<String> left) {
        static Outcome of(WriterNode node, boolean failed, String table) {
            return new Outcome(
                    failed,
                    (boolean) node.storageAttribute("NativeTransportRunning"),
                    (boolean) node.storageAttribute("GossipRunning"),
                    in(node, LOGGED_ERROR),
                    in(node, THROWN),
                    filesLeft(node, table));
        }

        private static SortedSet<String> in(WriterNode node, Pattern pattern) {
            return pattern.matcher(node.node().log())
                    .results()
                    .map(found -> found.groupCount() == 1 ? found.group(1) : found.group(1) + " " + found.group(2))
                    .collect(Collectors.toCollection(TreeSet::new));
        }
    }

    private static List<String> filesLeft(WriterNode node, String table) {
        try (Stream<Path> files = Files.list(node.tableFolder(table))) {
            return files.filter(Files::isRegularFile)
                    .map(file -> file.getFileName().toString())
                    .map(name -> name.replaceFirst("-\\d+-", "-#-").replaceFirst("_[0-9a-f-]{36}\\.log", "_#.log"))
                    .sorted()
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** What is done to a node, in a folder of its own. */
    private interface Scenario {
        Object play(String version, boolean patched, Path home) throws Exception;
    }

    /** Plays a scenario on a stock and on a patched node, at the same time, and expects the same of both. */
    private void assertAlike(String version, Scenario scenario) throws Exception {
        CompactionData.of(version);
        ExecutorService players = Executors.newFixedThreadPool(2);
        try {
            List<Future<Object>> outcomes = players.invokeAll(List.of(
                    () -> scenario.play(version, false, folder.resolve("stock")),
                    () -> scenario.play(version, true, folder.resolve("patched"))));
            Object ofPatched = outcomes.get(1).get();
            System.out.println("[writer] " + version + ": " + ofPatched);
            assertThat(ofPatched)
                    .as("what came of the patched node")
                    .isEqualTo(outcomes.get(0).get());
        } finally {
            players.shutdownNow();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = "4.1.10")
    void aCompactionThatIsKilledLeavesAllRows(String version) throws Exception {
        assertAlike(version, (release, patched, home) -> {
            CompactionData data = CompactionData.of(release);
            List<String> left;
            try (WriterNode node = started(release, patched, home, YAML)) {
                CompactionData.createKeyspace(node, true);
                data.load(node, "killed", LZ4, SIZE_TIERED);
                CompletableFuture<Void> compaction = beginCompaction(node, "killed");
                node.kill();
                assertThat(failed(compaction)).isTrue();
                left = filesLeft(node, "killed");
            }
            assertThat(left).as("a transaction under way").anyMatch(name -> name.contains("_txn_"));
            try (WriterNode node = started(release, patched, home, YAML)) {
                data.assertReadBack(node, "killed");
                assertThat(node.files("killed")).hasSize(CompactionData.SSTABLES);
                List<String> leftAfterRestart = filesLeft(node, "killed");
                node.compact("killed");
                assertThat(node.files("killed")).hasSize(1);
                data.assertReadBack(node, "killed");
                return List.of(left, leftAfterRestart);
            }
        });
    }

    @ParameterizedTest
    @ValueSource(strings = "4.1.10")
    void aCompactionThatIsStoppedLeavesNothing(String version) throws Exception {
        assertAlike(version, (release, patched, home) -> {
            CompactionData data = CompactionData.of(release);
            try (WriterNode node = started(release, patched, home, YAML)) {
                CompactionData.createKeyspace(node, true);
                data.load(node, "stopped", LZ4, SIZE_TIERED);
                CompletableFuture<Void> compaction = beginCompaction(node, "stopped");
                node.stopCompactions();
                boolean failed = failed(compaction);
                assertThat(node.files("stopped")).hasSize(CompactionData.SSTABLES);
                if (patched) {
                    node.awaitNoSlotInUse();
                    assertThat(node.metric("writer_slots_size_bytes")).isZero();
                }
                Outcome outcome = Outcome.of(node, failed, "stopped");
                node.compactionThroughput(0);
                node.compact("stopped");
                assertThat(node.files("stopped")).hasSize(1);
                data.assertReadBack(node, "stopped");
                return outcome;
            }
        });
    }

    /**
     * The channel takes what there is room for of a chunk, and it is the checksum behind it that fails: with an
     * {@code IOError}, which is nothing to the disk failure policy. So it is in stock, and must be here.
     */
    @ParameterizedTest
    @ValueSource(strings = "4.1.10")
    void aDiskThatFillsUpDuringACompactionIsReactedToAsInStock(String version) throws Exception {
        SmallDisk.assumeAllowed(folder);
        assertAlike(version, (release, patched, home) -> {
            CompactionData data = CompactionData.of(release);
            try (SmallDisk disk = SmallDisk.mount(home.resolve("data"), 300)) {
                String yaml = YAML + "local_system_data_file_directory: " + home.resolve("system");
                Outcome outcome;
                try (WriterNode node = started(release, patched, home, yaml)) {
                    CompactionData.createKeyspace(node, true);
                    data.load(node, "filled", LZ4, SIZE_TIERED);
                    CompletableFuture<Void> compaction = beginCompaction(node, "filled");
                    disk.fill();
                    node.compactionThroughput(0);
                    outcome = Outcome.of(node, failed(compaction), "filled");
                    assertThat(node.node().log()).contains("No space left on device");
                    if (patched) {
                        node.awaitNoSlotInUse();
                    }
                    disk.free();
                    node.terminate(STOP_SECONDS);
                }
                try (WriterNode node = started(release, patched, home, yaml)) {
                    data.assertReadBack(node, "filled");
                    node.compact("filled");
                    assertThat(node.files("filled")).hasSize(1);
                    data.assertReadBack(node, "filled");
                }
                return outcome;
            }
        });
    }

    @ParameterizedTest
    @ValueSource(strings = "4.1.10")
    void aDiskThatFillsUpDuringAFlushIsReactedToAsInStock(String version) throws Exception {
        SmallDisk.assumeAllowed(folder);
        assertAlike(version, (release, patched, home) -> {
            try (SmallDisk disk = SmallDisk.mount(home.resolve("data"), 200)) {
                // what the table says: flushes would rather be fast, and be over before the disk is full
                String yaml =
                        YAML + "flush_compression: table\nlocal_system_data_file_directory: " + home.resolve("system");
                Outcome outcome;
                Set<Integer> acknowledged;
                try (WriterNode node = started(release, patched, home, yaml)) {
                    CompactionData.createKeyspace(node, true);
                    CompactionData.createTable(
                            node,
                            "flushed",
                            "{'class': 'ZstdCompressor', 'compression_level': 12, 'chunk_length_in_kb': 16}",
                            SIZE_TIERED);
                    Writes writes = new Writes(node, "flushed");
                    writes.write(10_000);
                    acknowledged = writes.acknowledged();
                    assertThat(acknowledged).hasSize(10_000);
                    Path tableFolder = node.tableFolder("flushed");
                    node.node().jmx();
                    CompletableFuture<Void> flush = CompletableFuture.runAsync(
                            () -> node.flush("flushed"), run -> new Thread(run, "flush").start());
                    while (!flush.isDone() && !hasDataFile(tableFolder)) {
                        TimeUnit.MILLISECONDS.sleep(1);
                    }
                    disk.fill();
                    outcome = Outcome.of(node, failed(flush), "flushed");
                    assertThat(node.node().log()).contains("No space left on device");
                    if (patched) {
                        node.awaitNoSlotInUse();
                    }
                    disk.free();
                    node.kill(); // stock may wait for ever for the flush that has failed
                }
                try (WriterNode node = started(release, patched, home, yaml)) {
                    assertThat(Writes.found(node, "flushed")).containsAll(acknowledged);
                }
                return outcome;
            }
        });
    }

    @ParameterizedTest
    @ValueSource(strings = "4.1.10")
    void aNodeThatIsTerminatedUnderLoadKeepsWhatItHasAcknowledged(String version) throws Exception {
        assertAlike(version, (release, patched, home) -> endsUnderLoad(release, patched, home, false));
    }

    @ParameterizedTest
    @ValueSource(strings = "4.1.10")
    void aNodeThatIsDrainedUnderLoadKeepsWhatItHasAcknowledged(String version) throws Exception {
        assertAlike(version, (release, patched, home) -> endsUnderLoad(release, patched, home, true));
    }

    /** Ends a node that is being written to, flushes and compacts. */
    private static Object endsUnderLoad(String release, boolean patched, Path home, boolean drained) throws Exception {
        CompactionData data = CompactionData.of(release);
        Set<Integer> acknowledged;
        try (WriterNode node = started(release, patched, home, YAML)) {
            CompactionData.createKeyspace(node, true);
            data.load(node, "loaded", LZ4, SIZE_TIERED);
            CompactionData.createTable(
                    node, "written", LZ4, "{'class': 'SizeTieredCompactionStrategy', 'min_threshold': 2}");
            Writes writes = new Writes(node, "written");
            CompletableFuture<Void> writing = CompletableFuture.runAsync(
                    () -> writes.write(Integer.MAX_VALUE), run -> new Thread(run, "writes").start());
            CompletableFuture<Void> compaction = beginCompaction(node, "loaded");
            for (int i = 0; i < 4; i++) {
                TimeUnit.MILLISECONDS.sleep(300);
                node.flush("written");
            }
            long began = System.nanoTime();
            if (drained) {
                node.storage("drain");
                writes.stop();
            }
            node.terminate(STOP_SECONDS);
            writes.stop();
            System.out.println("[writer] " + node + (drained ? " has drained and ended in " : " has ended in ")
                    + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began) + " ms");
            writing.get(STOP_SECONDS, TimeUnit.SECONDS);
            compaction.handle((ended, failure) -> null).get(STOP_SECONDS, TimeUnit.SECONDS);
            acknowledged = writes.acknowledged();
        }
        assertThat(acknowledged).hasSizeGreaterThan(100);
        try (WriterNode node = started(release, patched, home, YAML)) {
            assertThat(Writes.found(node, "written")).containsAll(acknowledged);
            data.assertReadBack(node, "loaded");
            return List.of("all rows are there");
        }
    }

    private static WriterNode started(String version, boolean patched, Path home, String yaml) {
        WriterNode node = WriterNode.start(version, patched, home, yaml);
        try {
            return node.awaitStarted();
        } catch (RuntimeException | Error e) {
            node.close();
            throw e;
        }
    }

    /** Begins a slow compaction, and returns once it is under way. */
    private static CompletableFuture<Void> beginCompaction(WriterNode node, String table) {
        node.compactionThroughput(SLOW_MEBIBYTES);
        CompletableFuture<Void> compaction = node.startCompaction(table);
        node.awaitCompacting(table);
        if (node.isPatched()) {
            assertThat(node.metric("writer_chunks_total"))
                    .as("chunks on writer threads")
                    .isPositive();
        }
        return compaction;
    }

    private static boolean failed(CompletableFuture<Void> asked) throws Exception {
        return asked.handle((done, failure) -> failure != null).get(120, TimeUnit.SECONDS);
    }

    private static boolean hasDataFile(Path tableFolder) throws IOException {
        try (Stream<Path> files = Files.list(tableFolder)) {
            return files.anyMatch(file -> file.getFileName().toString().endsWith("-Data.db"));
        }
    }

    /** Rows written one after the other, some at a time, until there are enough, or the node takes no more. */
    private static final class Writes {
        private static final int AT_A_TIME = 64;

        private final CqlSession cql;
        private final PreparedStatement insert;
        private final Random random = new Random(1);
        private final Semaphore room = new Semaphore(AT_A_TIME);
        private final Set<Integer> acknowledged = ConcurrentHashMap.newKeySet();
        /** Written by the driver's threads and by the test's, read by the thread that writes rows. */
        private volatile boolean stopped;

        Writes(WriterNode node, String table) {
            cql = node.node().cql();
            insert = cql.prepare("INSERT INTO " + CompactionData.KEYSPACE + "." + table
                    + " (id, c, name, value) VALUES (?, 0, ?, ?)");
        }

        void write(int rows) {
            for (int id = 0; id < rows && !stopped; id++) {
                int row = id;
                room.acquireUninterruptibly();
                cql.executeAsync(insert.bind(id, "name" + id, value())).whenComplete((done, failure) -> {
                    if (failure == null) {
                        acknowledged.add(row);
                    } else {
                        stopped = true;
                    }
                    room.release();
                });
            }
            room.acquireUninterruptibly(AT_A_TIME);
            room.release(AT_A_TIME);
        }

        private String value() {
            StringBuilder value = new StringBuilder(4_100);
            while (value.length() < 4_000) {
                value.append(Long.toHexString(random.nextLong()));
            }
            return value.toString();
        }

        void stop() {
            stopped = true;
        }

        Set<Integer> acknowledged() {
            return Set.copyOf(acknowledged);
        }

        static Set<Integer> found(WriterNode node, String table) {
            Set<Integer> found = new HashSet<>();
            for (Row row : node.node().cql().execute("SELECT id FROM " + CompactionData.KEYSPACE + "." + table)) {
                found.add(row.getInt(0));
            }
            return found;
        }
    }
}
