/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import dev.cassandrahotpatch.it.CassandraNode;
import dev.cassandrahotpatch.it.CassandraRelease;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import javax.management.Attribute;
import javax.management.JMException;
import javax.management.ObjectName;

/**
 * A node, stock or with {@code async_sstable_writer}, whose data outlive it: a later one may be started on the same folder.
 * What operators do with nodetool is done over JMX. To be used by one thread.
 */
final class WriterNode implements AutoCloseable {
    private static final String STORAGE = "org.apache.cassandra.db:type=StorageService";
    private static final String COMPACTIONS = "org.apache.cassandra.db:type=CompactionManager";

    private final CassandraNode node;
    private final Path home;
    private final int metricsPort;

    private WriterNode(CassandraNode node, Path home, int metricsPort) {
        this.node = node;
        this.home = home;
        this.metricsPort = metricsPort;
    }

    /**
     * Starts a node, without waiting for it.
     *
     * @param home where its data and commit log are, or are to be
     * @param yaml lines for {@code cassandra.yaml}
     */
    static WriterNode start(String version, boolean patched, Path home, String yaml) {
        // 6.0 looks for its cluster where it was before
        return start(CassandraRelease.of(version), patched, home, storagePort(home), yaml);
    }

    /** Starts a node that is to join this one's cluster, as {@link #start(String, boolean, Path, String)} does. */
    WriterNode startBeside(Path newHome, String yaml) {
        return start(
                node.release(),
                isPatched(),
                newHome,
                storagePort(home),
                yaml,
                // time to learn of the other and of its ring
                "-Dcassandra.ring_delay_ms=5000",
                "-Dcassandra.settings.discovery_timeout=30s");
    }

    private static WriterNode start(
            CassandraRelease release, boolean patched, Path home, int seed, String yaml, String... options) {
        CassandraNode.Builder builder = CassandraNode.of(release)
                // the last of equal keys counts
                .yaml("storage_port: " + storagePort(home))
                .yaml("seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider,"
                        + " parameters: [{seeds: '127.0.0.1:" + seed + "'}]}]")
                .yaml("data_file_directories: ['" + home.resolve("data") + "']")
                .yaml("commitlog_directory: " + home.resolve("commitlog"))
                .yaml("saved_caches_directory: " + home.resolve("saved_caches"))
                .yaml("hints_directory: " + home.resolve("hints"))
                // SSTables are numbered in the order in which they are made
                .yaml("uuid_sstable_identifiers_enabled: false")
                .yaml("concurrent_compactors: 1")
                .yaml("compaction_throughput: 0MiB/s")
                // a busy machine is no reason to fail
                .yaml("read_request_timeout: 60s")
                .yaml("range_request_timeout: 60s")
                .yaml("write_request_timeout: 60s")
                .yaml("cas_contention_timeout: 60s");
        builder.yaml(yaml).afterJamm(options);
        int metricsPort = 0;
        if (patched) {
            metricsPort = freePort();
            builder.afterJamm(
                    "-javaagent:" + Path.of(System.getProperty("agent.jar")).toAbsolutePath(),
                    "-Dcassandra.hotpatch.async_sstable_writer=true",
                    "-Dcassandra.hotpatch.prometheus.port=" + metricsPort);
        }
        return new WriterNode(builder.start(), home, metricsPort);
    }

    /** Waits until the node takes clients and, if it is patched, the patch is in. */
    WriterNode awaitStarted() {
        System.out.println("[writer] " + this + " took " + node.awaitCql().toMillis() + " ms to CQL");
        if (isPatched()) {
            String state = node.awaitTable().state("async_sstable_writer");
            if (!state.equals("APPLIED")) {
                throw new IllegalStateException("the patch is " + state + " in " + this);
            }
        }
        return this;
    }

    boolean isPatched() {
        return metricsPort != 0;
    }

    CassandraNode node() {
        return node;
    }

    /** Runs a CQL statement without parameters. */
    void execute(String cql) {
        node.cql().execute(cql);
    }

    /** Where the SSTables of a table are. */
    Path tableFolder(String table) {
        try (Stream<Path> folders = Files.list(home.resolve("data").resolve(CompactionData.KEYSPACE))) {
            return folders.filter(folder -> folder.getFileName().toString().startsWith(table + "-"))
                    .findFirst()
                    .orElseThrow(() -> new IllegalStateException(this + " has no folder for " + table));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The SSTables of a table, once no compaction or flush has any left to delete. */
    List<SSTableFiles> files(String table) {
        Path folder = tableFolder(table);
        return node.await("an end of all transactions in " + folder, () -> SSTableFiles.settled(folder));
    }

    void flush(String table) {
        storage("forceKeyspaceFlush", CompactionData.KEYSPACE, new String[] {table});
    }

    void compact(String table) {
        storage("forceKeyspaceCompaction", false, CompactionData.KEYSPACE, new String[] {table});
    }

    /** Compacts on a thread of its own; fails as the compaction does. */
    CompletableFuture<Void> startCompaction(String table) {
        node.jmx(); // connects on this thread
        return CompletableFuture.runAsync(() -> compact(table), run -> new Thread(run, "compact-" + table).start());
    }

    /** Waits until a compaction of a table is at work and has read some of its input. */
    void awaitCompacting(String table) {
        node.await(
                "a compaction of " + table,
                () -> compactions().stream()
                        .filter(running -> table.equals(running.get("columnfamily")))
                        .filter(running -> Long.parseLong(running.get("completed")) > 8 << 20)
                        .findFirst());
    }

    @SuppressWarnings("unchecked") // what the MBean declares
    private List<Map<String, String>> compactions() {
        try {
            return (List<Map<String, String>>) node.jmx().getAttribute(new ObjectName(COMPACTIONS), "Compactions");
        } catch (JMException | IOException e) {
            throw new IllegalStateException("no compactions from " + this, e);
        }
    }

    /** Stops what compacts a table, by its kind: up to 4.1 it is a compaction, since 5.0 a major one. */
    void stopCompaction(String table) {
        String kind = compactions().stream()
                .filter(running -> table.equals(running.get("columnfamily")))
                .map(running -> running.get("taskType"))
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("nothing compacts " + table + " on " + this));
        node.invoke(COMPACTIONS, "stopCompaction", kind.toUpperCase(Locale.ROOT).replace(' ', '_'));
    }

    /** Limits compactions to so many MiB a second; 0 is no limit. */
    void compactionThroughput(int mebibytes) {
        try {
            node.jmx().setAttribute(new ObjectName(STORAGE), new Attribute("CompactionThroughputMbPerSec", mebibytes));
        } catch (JMException | IOException e) {
            throw new IllegalStateException("can't set the throughput of " + this, e);
        }
    }

    /**
     * Has every value of every SSTable read and held against its checksum; returns 0 if all is well.
     *
     * @param owned whether the node must own each key, too
     * @param tables all there are, if none is given
     */
    Object verify(boolean owned, String... tables) {
        return storage("verify", true, false, false, false, owned, false, CompactionData.KEYSPACE, tables);
    }

    /** Loads copies of SSTables. */
    void importSSTables(String table, Path from) {
        Object failed = node.invoke(
                "org.apache.cassandra.db:type=ColumnFamilies,keyspace=" + CompactionData.KEYSPACE + ",columnfamily="
                        + table,
                "importNewSSTables",
                Set.of(from.toString()),
                false,
                false,
                false,
                false,
                false,
                false,
                true);
        if (!((List<?>) failed).isEmpty()) {
            throw new IllegalStateException(this + " has not imported " + failed);
        }
    }

    /** Calls an operation of the MBean that nodetool calls. */
    Object storage(String operation, Object... arguments) {
        return node.invoke(STORAGE, operation, arguments);
    }

    /** Reads an attribute of the MBean that nodetool reads. */
    Object storageAttribute(String attribute) {
        try {
            return node.jmx().getAttribute(new ObjectName(STORAGE), attribute);
        } catch (JMException | IOException e) {
            throw new IllegalStateException("no " + attribute + " from " + this, e);
        }
    }

    /** One of the agent's metrics, as {@code writer_chunks_total}. */
    long metric(String name) {
        String line = "cassandra_hotpatch_" + name + " ";
        try {
            URL url = URI.create("http://127.0.0.1:" + metricsPort + "/metrics").toURL();
            try (var in = url.openStream()) {
                return new String(in.readAllBytes(), StandardCharsets.UTF_8)
                        .lines()
                        .filter(candidate -> candidate.startsWith(line))
                        .map(found -> (long) Double.parseDouble(found.substring(line.length())))
                        .findFirst()
                        .orElseThrow(() -> new IllegalStateException("no metric " + name));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Waits until no chunk is in flight. */
    void awaitNoSlotInUse() {
        node.await(
                "the end of all chunks",
                () -> Optional.of(metric("writer_slots_used")).filter(used -> used == 0));
    }

    /** Waits until the patch has given back all that it had: slots, memory and threads. */
    void awaitNothingHeld() {
        awaitNoSlotInUse();
        node.await(
                "the end of the slots' memory",
                () -> Optional.of(metric("writer_slots_size_bytes")).filter(bytes -> bytes == 0));
        node.await(
                "the end of the writer threads",
                () -> Optional.of(threads())
                        .filter(names -> names.stream().noneMatch(name -> name.startsWith("hotpatch-sstable-writer"))));
    }

    private List<String> threads() {
        try {
            ThreadMXBean bean = ManagementFactory.newPlatformMXBeanProxy(
                    node.jmx(), ManagementFactory.THREAD_MXBEAN_NAME, ThreadMXBean.class);
            return Stream.of(bean.getThreadInfo(bean.getAllThreadIds()))
                    .filter(Objects::nonNull) // ended in between
                    .map(ThreadInfo::getThreadName)
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Stops all threads of the process, wherever they are, until {@link #resume()}. */
    void pause() {
        signal("-STOP");
    }

    void resume() {
        signal("-CONT");
    }

    private void signal(String signal) {
        run("kill", signal, Long.toString(node.pid()));
    }

    /** From now on, no file of the process may grow beyond a size. */
    void limitFileSize(long bytes) {
        run("prlimit", "--pid", Long.toString(node.pid()), "--fsize=" + bytes);
    }

    private static void run(String... command) {
        try {
            int exit = new ProcessBuilder(command)
                    .inheritIO()
                    .start()
                    .onExit()
                    .join()
                    .exitValue();
            if (exit != 0) {
                throw new IllegalStateException(String.join(" ", command) + " has failed");
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** The size of the data file of a table that was written to last, 0 if there is none. */
    long newestDataFile(String table) {
        try (Stream<Path> files = Files.list(tableFolder(table))) {
            return files.map(Path::toFile)
                    .filter(file -> file.getName().endsWith("-Data.db"))
                    .max(Comparator.comparing(File::lastModified))
                    .map(File::length)
                    .orElse(0L);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Kills the process, which gets no chance to do anything about it. */
    void kill() throws InterruptedException {
        ProcessHandle process = ProcessHandle.of(node.pid()).orElseThrow();
        process.destroyForcibly();
        awaitEnd(process, 20);
    }

    /** Asks the process to end, as a service manager does; fails if it takes longer than the seconds given. */
    void terminate(int seconds) throws InterruptedException {
        ProcessHandle process = ProcessHandle.of(node.pid()).orElseThrow();
        process.destroy();
        awaitEnd(process, seconds);
    }

    private void awaitEnd(ProcessHandle process, int seconds) throws InterruptedException {
        long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        while (process.isAlive() || node.isAlive()) { // the second learns of it a little later
            if (System.nanoTime() > limit) {
                throw new AssertionError(this + " still runs after " + seconds + " s");
            }
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    /** The port that a node on this folder had before, or a free one. */
    private static int storagePort(Path home) {
        Path remembered = home.resolve("storage_port");
        try {
            if (!Files.exists(remembered)) {
                Files.createDirectories(home);
                Files.writeString(remembered, Integer.toString(freePort()));
            }
            return Integer.parseInt(Files.readString(remembered));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** A port that nobody listens on, below those that the system gives to clients. */
    private static int freePort() {
        while (true) {
            int port = ThreadLocalRandom.current().nextInt(10_000, 30_000);
            try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return socket.getLocalPort();
            } catch (IOException taken) {
                // the next one may be free
            }
        }
    }

    @Override
    public void close() {
        node.close();
    }

    @Override
    public String toString() {
        return (isPatched() ? "patched " : "stock ") + node;
    }
}
