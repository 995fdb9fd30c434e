/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * How fast compactions and flushes are with {@code async_sstable_writer}, beside stock. {@code mvn -Pwriter-speed verify} runs it.
 *
 * <p>A stock and a patched node of the same release run at the same time, and only one of them works: the same files, in turn.
 * The first round of each is not counted: it warms the JVMs up. Share is {@code doFlush}'s part of the compacting thread's wall
 * time on the stock node, from one compaction more. One of the two threads that a compaction then has does {@code doFlush}, the
 * other one the rest, so that it can't be faster than 1/max(share, 1-share).
 */
public final class WriterSpeed {
    private static final int ROUNDS = Integer.getInteger("writer-speed.rounds", 5);
    private static final String LZ4 = "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 16}";
    private static final String ZSTD = "{'class': 'ZstdCompressor', 'chunk_length_in_kb': 16}";
    /** The least part of the limit that a compaction must reach, and the most that a flush may take longer. */
    private static final double LEAST_OF_LIMIT = 0.9;

    private static final double MOST_LONGER = 1.03;

    private final CassandraRelease release;
    private final Path folder;
    private final List<String> missed = new ArrayList<>();

    private WriterSpeed(CassandraRelease release, Path folder) {
        this.release = release;
        this.folder = folder;
    }

    /** Measures the releases that {@code writer-speed.releases} names; fails where a bar is missed on an idle machine. */
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(System.getProperty("writer-speed.folder")).toAbsolutePath();
        Files.createDirectories(folder);
        List<String> missed = new ArrayList<>();
        for (String version :
                System.getProperty("writer-speed.releases", "4.1.10,6.0-alpha2").split(",", -1)) {
            WriterSpeed speed = new WriterSpeed(CassandraRelease.of(version), folder);
            speed.run();
            missed.addAll(speed.missed);
        }
        System.out.println(missed.isEmpty() ? "[speed] every bar is met" : "[speed] missed: " + missed);
    }

    /** What is timed. */
    private interface Work {
        Duration on(SpeedNode node) throws IOException, InterruptedException;
    }

    private void run() throws IOException, InterruptedException {
        say(release + ", stock and patched in turn, on Java " + System.getProperty("java.version") + ", "
                + Runtime.getRuntime().availableProcessors() + " cores");
        SSTables sstables = SSTables.write(release, folder.resolve("sstables-" + release.version()));
        say(sstables.toString());
        try (SpeedNode stock = new SpeedNode(release, false, folder);
                SpeedNode patched = new SpeedNode(release, true, folder)) {
            compaction("compaction, LZ4", stock, patched, node -> node.compact(sstables, LZ4));
            compaction("compaction, Zstd", stock, patched, node -> node.compact(sstables, ZSTD));
            atMost("8 compactions at once, LZ4", stock, patched, node -> node.compactEach(sstables, LZ4));
            atMost("flush of a memtable", stock, patched, node -> node.flush(LZ4));
        }
    }

    /** Compares compactions, whose ratio has a limit that they should be near. */
    private void compaction(String what, SpeedNode stock, SpeedNode patched, Work work)
            throws IOException, InterruptedException {
        Pairs pairs = alternate(what, stock, patched, work);
        CompactionProfile profile = new CompactionProfile(stock.node(), folder);
        work.on(stock);
        double share = profile.stopAndGetShareOfFlushing();
        double limit = 1 / Math.max(share, 1 - share);
        say(String.format(
                Locale.ROOT,
                "%s, %s: %.2f times as fast, %.0f %% of the limit of %.2f: doFlush has %.1f %% of the compacting thread, in stock",
                release,
                what,
                pairs.timesAsFast(),
                100 * pairs.timesAsFast() / limit,
                limit,
                100 * share));
        if (pairs.timesAsFast() < LEAST_OF_LIMIT * limit) {
            missed.add(release + ", " + what);
        }
    }

    /** Compares what need not become faster, but must not become slower. */
    private void atMost(String what, SpeedNode stock, SpeedNode patched, Work work)
            throws IOException, InterruptedException {
        Pairs pairs = alternate(what, stock, patched, work);
        double ratio = 1 / pairs.timesAsFast();
        say(String.format(
                Locale.ROOT, "%s, %s: takes %.2f of the time; %.2f are allowed", release, what, ratio, MOST_LONGER));
        if (ratio > MOST_LONGER) {
            missed.add(release + ", " + what);
        }
    }

    private Pairs alternate(String what, SpeedNode stock, SpeedNode patched, Work work)
            throws IOException, InterruptedException {
        Pairs pairs = new Pairs();
        for (int round = 0; round <= ROUNDS; round++) {
            Took ofStock = Took.by(stock, work);
            Took ofPatched = Took.by(patched, work);
            if (!stock.digests().equals(patched.digests())) {
                throw new IllegalStateException("other files than stock's after " + what + ": " + patched.digests()
                        + " in place of " + stock.digests());
            }
            if (round > 0) {
                pairs.stock.add(ofStock);
                pairs.patched.add(ofPatched);
            }
        }
        say(release + ", " + what + ": stock " + pairs.stock);
        say(release + ", " + what + ": patched " + pairs.patched);
        return pairs;
    }

    /** What one round took: wall time, and CPU time of the whole process. */
    private record Took(double seconds, double cpuSeconds) {
        static Took by(SpeedNode node, Work work) throws IOException, InterruptedException {
            Duration cpuBefore = node.cpuTime();
            double seconds = work.on(node).toNanos() / 1e9;
            return new Took(seconds, node.cpuTime().minus(cpuBefore).toNanos() / 1e9);
        }

        @Override
        public String toString() {
            return String.format(Locale.ROOT, "%.2f s (CPU %.1f s)", seconds, cpuSeconds);
        }
    }

    private static final class Pairs {
        private final List<Took> stock = new ArrayList<>();
        private final List<Took> patched = new ArrayList<>();

        /** The ratio of the medians. */
        double timesAsFast() {
            return median(stock) / median(patched);
        }

        private static double median(List<Took> rounds) {
            List<Double> sorted = rounds.stream().map(Took::seconds).sorted().collect(Collectors.toList());
            int middle = sorted.size() / 2;
            return sorted.size() % 2 == 1 ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
        }
    }

    private static void say(String line) {
        System.out.println("[speed] " + line);
    }
}
