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
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeMap;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What goes wrong around a node with {@code async_sstable_writer} comes out as it does on a stock node that has the same happen
 * to it: the same reaction, the same kinds of errors in the log, the same files left, the same rows after a restart.
 */
@Tag("writer")
@ParameterizedClass(name = "{0}")
@ValueSource(strings = {"4.1.10", "6.0-alpha2"})
@Timeout(600)
class WriterFaultsOnNodesIT {
    private static final String LZ4 = "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 16}";
    /** Slow, so that a flush lasts until its disk is full. */
    private static final String SLOW_ZSTD =
            "{'class': 'ZstdCompressor', 'compression_level': 12, 'chunk_length_in_kb': 16}";

    /** Nothing is compacted but what is asked for, also after a restart. */
    private static final String IDLE = "{'class': 'SizeTieredCompactionStrategy', 'enabled': false}";

    private static final int SLOW_MEBIBYTES = 8;
    /** Room for what all tests leave behind them, so that no compaction finds too little to begin. */
    private static final int DISK_MEBIBYTES = 900;

    private static final int STOP_SECONDS = 60;
    private static final int FAIL_SECONDS = 120;
    /** As an operator would have it; and the commit log on disk at once, so that a kill loses nothing acknowledged. */
    private static final String YAML = "disk_failure_policy: stop\ncommitlog_sync_period_in_ms: 50\n"
            // what the table says: flushes would rather be fast, and be over before the disk is full
            + "flush_compression: table\n"
            // smaller than a file that may not grow any more
            + "commitlog_segment_size: 2MiB\n";

    private static final Pattern THROWN = Pattern.compile(
            "^(?:Caused by: |\\s*Suppressed: )?((?:[a-z]\\w*\\.)+\\w*(?:Exception|Error))\\b", Pattern.MULTILINE);
    private static final Pattern LOGGED_ERROR =
            Pattern.compile("^ERROR \\[([A-Za-z-]+)[^\\]]*\\] \\S+ \\S+ (\\w+\\.java):\\d+", Pattern.MULTILINE);

    @TempDir
    static Path folder;

    private static CompactionData data;
    private static Host stock;
    private static Host patched;

    @Parameter
    private String version;

    @BeforeParameterizedClassInvocation
    static void makeHosts(String version) throws IOException {
        data = CompactionData.of(version);
        boolean disks = SmallDisk.allowed(folder);
        stock = new Host(version, false, disks);
        patched = new Host(version, true, disks);
    }

    @AfterParameterizedClassInvocation
    static void closeHosts() throws IOException {
        try {
            if (patched != null && patched.node != null) {
                patched.node.awaitNothingHeld();
            }
        } finally {
            for (Host host : Stream.of(stock, patched).filter(Objects::nonNull).toList()) {
                host.close();
            }
            stock = null;
            patched = null;
        }
    }

    /** Where a stock or a patched node lives, dies and is started again. */
    private static final class Host implements AutoCloseable {
        private final String version;
        private final boolean patched;
        private final Path home;
        /** Under the node's SSTables, except the local system tables'; null where none may be mounted. */
        private final SmallDisk disk;

        private WriterNode node;

        Host(String version, boolean patched, boolean withDisk) throws IOException {
            this.version = version;
            this.patched = patched;
            this.home = folder.resolve(version + (patched ? "-patched" : "-stock"));
            this.disk = withDisk ? SmallDisk.mount(home.resolve("data"), DISK_MEBIBYTES) : null;
        }

        /** The node that runs; a new one, on what the last has left, if that has ended. */
        WriterNode node() {
            if (node == null || !node.node().isAlive()) {
                stop();
                node = WriterNode.start(
                        version,
                        patched,
                        home,
                        YAML + "local_system_data_file_directory: " + home.resolve("system") + "\n"
                                + (version.startsWith("6") ? CompactionData.NEWEST_FORMAT : ""));
                CompactionData.createKeyspace(node.awaitStarted(), true);
            }
            return node;
        }

        private void stop() {
            if (node != null) {
                node.close();
                node = null;
            }
        }

        @Override
        public void close() throws IOException {
            try {
                stop();
            } finally {
                if (disk != null) {
                    disk.close();
                }
            }
        }
    }

    /**
     * What a fault leads to.
     *
     * @param failed whether what was asked of the node failed
     * @param serves whether the node still takes clients
     * @param gossips whether the node still is a member of its cluster
     * @param errors the classes that logged an error, with the kind of their thread
     * @param thrown the classes of the exceptions in the log
     * @param left the files of the table, without their numbers, and how many there are of each
     */
    private record Outcome(
            boolean failed,
            boolean serves,
            boolean gossips,
            SortedSet<String> errors,
            SortedSet<String> thrown,
            Map<String, Long> left) {
        /** Of what has happened since the log had a certain length. */
        static Outcome of(WriterNode node, int logged, boolean failed, String table) {
            String log = node.node().log().substring(logged);
            return new Outcome(
                    failed,
                    (boolean) node.storageAttribute("NativeTransportRunning"),
                    (boolean) node.storageAttribute("GossipRunning"),
                    in(log, LOGGED_ERROR),
                    in(log, THROWN),
                    filesLeft(node, table));
        }

        private static SortedSet<String> in(String log, Pattern pattern) {
            return pattern.matcher(log)
                    .results()
                    .map(found -> found.groupCount() == 1 ? found.group(1) : found.group(1) + " " + found.group(2))
                    .collect(Collectors.toCollection(TreeSet::new));
        }
    }

    private static Map<String, Long> filesLeft(WriterNode node, String table) {
        try (Stream<Path> files = Files.list(node.tableFolder(table))) {
            return files.filter(Files::isRegularFile)
                    .map(file -> file.getFileName().toString())
                    .map(name -> name.replaceFirst("-\\d+-", "-#-").replaceFirst("_[0-9a-f-]{36}\\.log", "_#.log"))
                    .collect(Collectors.groupingBy(name -> name, TreeMap::new, Collectors.counting()));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** What is done to a node. */
    private interface Scenario {
        Object play(Host host) throws Exception;
    }

    /** Plays a scenario on the stock and on the patched node, at the same time, and expects the same of both. */
    private void assertAlike(Scenario scenario) throws Exception {
        ExecutorService players = Executors.newFixedThreadPool(2);
        try {
            List<Future<Object>> outcomes =
                    players.invokeAll(List.of(() -> scenario.play(stock), () -> scenario.play(patched)));
            Object ofPatched = outcomes.get(1).get();
            System.out.println("[writer] " + version + ": " + ofPatched);
            assertThat(ofPatched)
                    .as("what came of the patched node")
                    .isEqualTo(outcomes.get(0).get());
        } finally {
            players.shutdownNow();
        }
    }

    @Test
    void aCompactionThatIsKilledLeavesAllRows() throws Exception {
        assertAlike(host -> {
            data.load(host.node(), "killed", LZ4, IDLE);
            CompletableFuture<Void> compaction = beginCompaction(host.node(), "killed");
            host.node().kill();
            assertThat(failed(compaction)).isTrue();
            Map<String, Long> left = filesLeft(host.node, "killed");
            assertThat(left.keySet()).as("a transaction under way").anyMatch(name -> name.contains("_txn_"));

            data.assertReadBack(host.node(), "killed");
            assertThat(host.node().files("killed")).hasSize(CompactionData.SSTABLES);
            Map<String, Long> leftAfterRestart = filesLeft(host.node(), "killed");
            compactsNow(host, "killed");
            return List.of(left, leftAfterRestart);
        });
    }

    @Test
    void aCompactionThatIsStoppedLeavesNothing() throws Exception {
        assertAlike(host -> {
            WriterNode node = host.node();
            data.load(node, "stopped", LZ4, IDLE);
            int logged = node.node().log().length();
            CompletableFuture<Void> compaction = beginCompaction(node, "stopped");
            node.stopCompaction("stopped");
            boolean failed = failed(compaction);
            assertThat(node.files("stopped")).hasSize(CompactionData.SSTABLES);
            if (host.patched) {
                node.awaitNoSlotInUse();
            }
            Outcome outcome = Outcome.of(node, logged, failed, "stopped");
            compactsNow(host, "stopped");
            return outcome;
        });
    }

    /**
     * The channel takes what there is room for of a chunk, and it is the checksum behind it that fails: with an
     * {@code IOError}, which is nothing to the disk failure policy. So it is in stock, and must be here.
     */
    @Test
    void aDiskThatFillsUpDuringACompactionIsReactedToAsInStock() throws Exception {
        SmallDisk.assumeAllowed(folder);
        assertAlike(host -> {
            WriterNode node = host.node();
            data.load(node, "filled", LZ4, IDLE);
            int logged = node.node().log().length();
            CompletableFuture<Void> compaction = beginCompaction(node, "filled");
            host.disk.fillUnder(node, "filled");
            node.compactionThroughput(0);
            Outcome outcome = Outcome.of(node, logged, failed(compaction), "filled");
            assertThat(node.node().log().substring(logged)).contains("No space left on device");
            if (host.patched) {
                node.awaitNoSlotInUse();
            }
            host.disk.free();
            node.terminate(STOP_SECONDS);

            data.assertReadBack(host.node(), "filled");
            compactsNow(host, "filled");
            return outcome;
        });
    }

    /** Here it is the chunk that can't be written: an {@code FSWriteError}, at which the policy stops the node. */
    @Test
    void aFileThatMayNotGrowStopsTheNodeAsInStock() throws Exception {
        assertAlike(host -> {
            WriterNode node = host.node();
            data.load(node, "limited", LZ4, IDLE);
            int logged = node.node().log().length();
            CompletableFuture<Void> compaction = beginCompaction(node, "limited");
            node.compactionThroughput(1);
            limitBetweenChunks(node, "limited");
            Outcome outcome = Outcome.of(node, logged, failed(compaction), "limited");
            assertThat(outcome.serves()).isFalse();
            assertThat(outcome.gossips()).isFalse();
            if (host.patched) {
                node.awaitNoSlotInUse();
            }
            node.terminate(STOP_SECONDS);

            data.assertReadBack(host.node(), "limited");
            compactsNow(host, "limited");
            return outcome;
        });
    }

    /**
     * Lets the newest data file grow no more, from a moment when the compaction is held up and no chunk half written: a thread
     * is stopped when it comes out of a write, and that may be the one between a chunk and its checksum.
     */
    private static void limitBetweenChunks(WriterNode node, String table) throws InterruptedException {
        while (true) {
            long size = node.newestDataFile(table);
            TimeUnit.MILLISECONDS.sleep(20);
            if (size == 0 || size != node.newestDataFile(table)) {
                continue;
            }
            node.pause();
            try {
                TimeUnit.MILLISECONDS.sleep(20);
                if (size == node.newestDataFile(table)) {
                    node.limitFileSize(size);
                    return;
                }
            } finally {
                node.resume();
            }
        }
    }

    @Test
    void aDiskThatFillsUpDuringAFlushIsReactedToAsInStock() throws Exception {
        SmallDisk.assumeAllowed(folder);
        assertAlike(host -> {
            WriterNode node = host.node();
            CompactionData.createTable(node, "flushed", SLOW_ZSTD, IDLE);
            Writes writes = new Writes(node, "flushed");
            writes.write(10_000);
            Set<Integer> acknowledged = writes.acknowledged();
            assertThat(acknowledged).hasSize(10_000);
            int logged = node.node().log().length();
            node.node().jmx(); // connects on this thread
            CompletableFuture<Void> flush =
                    CompletableFuture.runAsync(() -> node.flush("flushed"), run -> new Thread(run, "flush").start());
            host.disk.fillUnder(node, "flushed");
            Outcome outcome = Outcome.of(node, logged, failed(flush), "flushed");
            assertThat(node.node().log().substring(logged)).contains("No space left on device");
            if (host.patched) {
                node.awaitNoSlotInUse();
            }
            host.disk.free();
            node.kill(); // stock may wait for ever for the flush that has failed

            assertThat(Writes.found(host.node(), "flushed")).containsAll(acknowledged);
            return outcome;
        });
    }

    @Test
    void aNodeThatIsTerminatedUnderLoadKeepsWhatItHasAcknowledged() throws Exception {
        assertAlike(host -> endsUnderLoad(host, "terminated", false));
    }

    @Test
    void aNodeThatIsDrainedUnderLoadKeepsWhatItHasAcknowledged() throws Exception {
        assertAlike(host -> endsUnderLoad(host, "drained", true));
    }

    /** Ends a node that is being written to, flushes and compacts. */
    private static Object endsUnderLoad(Host host, String table, boolean drains) throws Exception {
        WriterNode node = host.node();
        String compacted = table + "_compacted";
        data.load(node, compacted, LZ4, IDLE);
        CompactionData.createTable(node, table, LZ4, "{'class': 'SizeTieredCompactionStrategy', 'min_threshold': 2}");
        Writes writes = new Writes(node, table);
        CompletableFuture<Void> writing = CompletableFuture.runAsync(
                () -> writes.write(Integer.MAX_VALUE), run -> new Thread(run, "writes").start());
        CompletableFuture<Void> compaction = beginCompaction(node, compacted);
        for (int i = 0; i < 4; i++) {
            TimeUnit.MILLISECONDS.sleep(300);
            node.flush(table);
        }
        long began = System.nanoTime();
        if (drains) {
            node.storage("drain");
            writes.stop();
        }
        node.terminate(STOP_SECONDS);
        writes.stop();
        System.out.println("[writer] " + node + (drains ? " has drained and ended in " : " has ended in ")
                + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began) + " ms");
        writing.get(STOP_SECONDS, TimeUnit.SECONDS);
        failed(compaction); // or over, before the end came: either will do
        Set<Integer> acknowledged = writes.acknowledged();
        assertThat(acknowledged).hasSizeGreaterThan(100);

        assertThat(Writes.found(host.node(), table)).containsAll(acknowledged);
        data.assertReadBack(host.node(), compacted);
        return "all rows are there";
    }

    /** Begins a slow compaction, and returns once it is under way. */
    private static CompletableFuture<Void> beginCompaction(WriterNode node, String table) {
        node.compactionThroughput(SLOW_MEBIBYTES);
        long before = node.isPatched() ? node.metric("writer_chunks_total") : 0;
        CompletableFuture<Void> compaction = node.startCompaction(table);
        node.awaitCompacting(table);
        if (node.isPatched()) {
            assertThat(node.metric("writer_chunks_total"))
                    .as("chunks on writer threads")
                    .isGreaterThan(before);
        }
        return compaction;
    }

    /** Compacts all there is, which nothing may hold up any more, and reads it. */
    private static void compactsNow(Host host, String table) {
        host.node().compactionThroughput(0);
        host.node().compact(table);
        assertThat(host.node().files(table)).hasSize(1);
        data.assertReadBack(host.node(), table);
    }

    private static boolean failed(CompletableFuture<Void> asked) throws Exception {
        return asked.handle((done, failure) -> failure != null).get(FAIL_SECONDS, TimeUnit.SECONDS);
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
