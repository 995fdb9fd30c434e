/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import dev.cassandrahotpatch.benchmarks.node.WholeNodes;
import dev.cassandrahotpatch.it.CassandraRelease;
import dev.cassandrahotpatch.it.Measurement;
import dev.cassandrahotpatch.it.Measurement.Variant;
import dev.cassandrahotpatch.runtime.HandOffBenchmark;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * Measures what the patches are for, each beside the stock code in the same run: {@code mvn -Pbenchmarks verify}. Writes a
 * {@link Measurement} a table; {@link Report} makes a page of them. System properties:
 *
 * <ul>
 *   <li>{@code benchmarks.long=true}: more rounds and iterations, for figures to keep
 *   <li>{@code benchmarks.only=<id>}: only what belongs to this patch, or to the {@code agent} itself
 * </ul>
 */
public final class Benchmarks {
    private static final String V41 = "4.1.10";
    private static final String V60 = "6.0-alpha2";

    /**
     * How long to measure.
     *
     * @param rounds how often stock and patched take turns, in new JVMs
     * @param warmUps iterations before those that count
     * @param iterations that count, in each round
     * @param millis of an iteration; several times that for more threads than cores, which must all have had their turn
     * @param starts how often each JVM is started, where starting it is what is measured
     */
    record Length(int rounds, int warmUps, int iterations, int millis, int starts) {
        static final Length QUICK = new Length(1, 3, 5, 200, 6);
        static final Length LONG = new Length(4, 5, 5, 1_000, 20);

        List<String> jmhOptions(int threads) {
            String time = (threads > Runtime.getRuntime().availableProcessors() ? 3 * millis : millis) + "ms";
            return List.of(
                    "-wi", Integer.toString(warmUps), "-w", time, "-i", Integer.toString(iterations), "-r", time);
        }
    }

    private Benchmarks() {}

    /** Takes no arguments. */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        Length length = Boolean.getBoolean("benchmarks.long") ? Length.LONG : Length.QUICK;
        String only = System.getProperty("benchmarks.only", "");
        Path folder = Path.of(System.getProperty("results.folder"));
        long began = System.nanoTime();
        if (Files.isDirectory(folder)) { // so that all that is reported is of one run
            try (Stream<Path> earlier = Files.list(folder)) {
                for (Path file : earlier.toList()) {
                    Files.delete(file);
                }
            }
        }
        int number = 10;
        for (JmhBenchmark benchmark : all()) {
            if (only.isEmpty() || only.equals(benchmark.patch())) {
                for (Measurement measurement : benchmark.run(length)) {
                    number = write(measurement, folder, number);
                }
            }
        }
        if (only.isEmpty() || only.equals(AgentCost.ID)) {
            for (Measurement measurement : new AgentCost(CassandraRelease.of(V41)).run(length.starts())) {
                number = write(measurement, folder, number);
            }
        }
        for (Measurement measurement : WholeNodes.measure(
                Boolean.getBoolean("benchmarks.long") ? WholeNodes.Length.LONG : WholeNodes.Length.QUICK,
                only,
                Path.of(System.getProperty("nodes.folder")))) {
            number = write(measurement, folder, number);
        }
        System.out.printf("[benchmarks] done in %d s%n", (System.nanoTime() - began) / 1_000_000_000);
    }

    private static int write(Measurement measurement, Path folder, int number) {
        measurement.writeTo(folder.resolve(number + "-" + measurement.patch() + ".json"));
        return number + 1;
    }

    private static List<JmhBenchmark> all() {
        return List.of(
                JmhBenchmark.of("cache_capacity", V41, CacheCapacityBenchmark.class)
                        .stockAndOurs("capacity")
                        .only(Variant.UPSTREAM, "capacityAsUpstream")
                        .threads(1, 2, 8, 64)
                        .table(
                                ContentionModel.CAPACITY,
                                "One operation asks one key cache whether its capacity is 0; upstream's diff asks whether"
                                        + " its size is. Operations of all threads together."),
                JmhBenchmark.of("cache_capacity", V41, CacheCapacityBenchmark.class)
                        .stockAndOurs("cacheKey")
                        .only(Variant.UPSTREAM, "cacheKeyAsUpstream")
                        .threads(1, 2, 8, 64)
                        .table(
                                "A read that goes to the index puts its key into the cache",
                                "What `SSTableReader.cacheKey` does: the question of the table above, then `put`, which takes"
                                        + " the eviction lock itself for its upkeep, with every variant."),
                JmhBenchmark.of("cache_capacity", V41, CacheCapacityBenchmark.class)
                        .stockAndOurs("cachedCounter")
                        .threads(1, 2, 8, 64)
                        .table(
                                "A counter is looked up before it is written",
                                "What `ColumnFamilyStore.getCachedCounter` does, for counters that are in the cache."
                                        + " Upstream's diff leaves it as it is."),
                JmhBenchmark.of("cache_capacity", V41, CacheCapacityBenchmark.class)
                        .stockAndOurs("firstReads")
                        .only(Variant.UPSTREAM, "firstReadsAsUpstream")
                        .table(
                                "Hits of a key cache that starts empty",
                                "hits",
                                "hits",
                                "100,000 reads of 10,000 keys. An empty cache has size 0, so upstream's diff never puts a"
                                        + " key into it. Exact, the same in every run."),
                JmhBenchmark.of("cache_capacity", V41, LockBenchmark.class)
                        .only(Variant.STOCK, "handOver")
                        .threads(2)
                        .table(
                                ContentionModel.HAND_OVER,
                                "Two threads that sleep and wake each other in turn, hand-overs of both together. No code of"
                                        + " Cassandra's; the prediction below needs it."),
                JmhBenchmark.of("response_buffer_sizing", V41, ResponseBufferBenchmark.class)
                        .stockAndOurs("respond")
                        .only(Variant.UPSTREAM, "respondAsUpstream")
                        .only(Variant.FLOOR, "respondExactly")
                        .table(
                                "Bytes allocated for a response",
                                "gc.alloc.rate.norm",
                                "B/op",
                                "All that `ReadResponse` allocates to serialise one partition; rows of 1,000 bytes, a maximum heap of 8 GiB. Upstream is"
                                        + " 6.0's algorithm. The floor starts with an array of just the right size, which only"
                                        + " somebody who knows the size beforehand can.")
                        .table("Time for a response", "The same runs; one thread."),
                JmhBenchmark.of("connection_request_counter", V60, RequestCounterBenchmark.class)
                        .stockAndOurs("count")
                        .only(Variant.UPSTREAM, "countAsUpstream")
                        .threads(1, 2, 8)
                        .table(
                                "Counting a request",
                                "Each thread on a connection of its own, a real `ServerConnection`. Upstream's fix moves the"
                                        + " count to the connection's event loop, which alone writes it: another change of the"
                                        + " code, not to be had by swapping the counter."),
                JmhBenchmark.of("connection_request_counter", V60, RequestCounterBenchmark.class)
                        .stockAndOurs("scan")
                        .only(Variant.UPSTREAM, "scanAsUpstream")
                        .table(
                                "Reading the counters of all connections",
                                "What `SELECT * FROM system_views.clients` asks of them, with so many request threads alive."),
                JmhBenchmark.of("connection_request_counter", V60, RequestCounterBenchmark.class)
                        .stockAndOurs("scanDuringChurn")
                        .table(
                                "Reading the counters while connections come and go",
                                "10,000 connections, 64 request threads; each closing thread closes some thousand connections a"
                                        + " second, and opens others in their place."),
                JmhBenchmark.of("async_sstable_writer", V41, SSTableWriterBenchmark.class)
                        .stockAndOurs("writeFile")
                        .agentOption("-Dcassandra.hotpatch.async_sstable_writer=true")
                        .table(
                                "Writing a data file",
                                "16 MiB of rows through `CompressedSequentialWriter`, chunks of 16 KiB, closed at the end. The"
                                        + " thread that writes also works on every row, in place of the merging that a"
                                        + " compaction does; how much it does decides how much can be gained."),
                JmhBenchmark.of("async_sstable_writer", V41, HandOffBenchmark.class)
                        .only(Variant.OURS, "handOff")
                        .agentOption("-Dcassandra.hotpatch.async_sstable_writer.threads=8")
                        .threads(1, 2, 8)
                        .table(
                                "Handing a chunk over",
                                "A chunk of 16 KiB to a writer thread that has nothing to do for it: what the patch adds to"
                                        + " each chunk. Each thread has a file and a writer thread of its own, on however few processors. Stock has no such step."));
    }

    static String java() {
        return Path.of(System.getProperty("java.home"), "bin", "java").toString();
    }

    /** What a JVM is given to run with the agent; it acts in any JVM, not only in a daemon. */
    static List<String> agentOptions() {
        return List.of("-Dcassandra.hotpatch.scope=all", "-javaagent:" + System.getProperty("agent.jar"));
    }

    /** A release's jars, without its logging: it would print all of Cassandra's debugging. */
    static Stream<Path> jars(CassandraRelease release) {
        return release.jars().stream()
                .filter(jar -> !jar.getFileName().toString().startsWith("logback"));
    }

    /** Runs a command to its end, its output in a file of this name. */
    static void run(List<String> command, String name) throws IOException, InterruptedException {
        Path folder = Path.of(System.getProperty("logs.folder"));
        Files.createDirectories(folder);
        Path log = folder.resolve(name + ".log");
        Process process = new ProcessBuilder(new ArrayList<>(command))
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        try {
            if (process.waitFor() != 0) {
                throw new IllegalStateException(name + " failed:\n" + Files.readString(log));
            }
        } finally {
            process.destroy();
        }
    }
}
