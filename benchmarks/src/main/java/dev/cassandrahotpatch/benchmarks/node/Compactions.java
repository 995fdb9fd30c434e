/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import dev.cassandrahotpatch.it.CassandraRelease;
import dev.cassandrahotpatch.it.Measurement;
import dev.cassandrahotpatch.it.Measurement.Better;
import dev.cassandrahotpatch.it.Measurement.Case;
import dev.cassandrahotpatch.it.Measurement.Variant;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * How fast compactions and flushes are with {@code async_sstable_writer}, beside stock, which must make files with the same bytes.
 *
 * <p>How much a compaction can gain has a limit. Share is {@code doFlush}'s part of the compacting thread's wall time on the stock
 * node, from one compaction more. One of the two threads that a compaction then has does {@code doFlush}, the other one the
 * rest, so that it can't be faster than 1/max(share, 1-share).
 */
final class Compactions {
    private static final String LZ4 = "LZ4Compressor";
    private static final String ZSTD = "ZstdCompressor";

    /** In the first compactions, compilers take a second of CPU time from the core that the writer thread has. */
    private static final int WARM_UPS = 3;

    private final CassandraRelease release;
    private final Path folder;

    Compactions(CassandraRelease release, Path folder) {
        this.release = release;
        this.folder = folder;
    }

    /** What one turn took. */
    private record Took(double seconds, double cpuSeconds, List<String> digests) {}

    List<Measurement> measure(WholeNodes.Length length) throws IOException, InterruptedException {
        SSTables sstables = SSTables.write(release, folder, length.whole());
        List<Case> wall = new ArrayList<>();
        List<Case> cpu = new ArrayList<>();
        List<String> limits = new ArrayList<>();
        try (Turns<CompactingNode> turns = Turns.start(variant -> new CompactingNode(release, variant, folder))) {
            for (String compressor : length.whole() ? List.of(LZ4, ZSTD) : List.of(LZ4)) {
                Turns.Turn<CompactingNode, Duration> compaction = node -> node.compact(sstables, compressor);
                String name = "compaction of 8 SSTables, " + compressor;
                double timesAsFast = compare(name, turns, length.turns(), compaction, wall, cpu);
                limits.add(limit(name, turns.stock(), compaction, timesAsFast));
            }
            if (length.whole()) {
                compare(
                        "8 compactions at once, " + LZ4,
                        turns,
                        length.turns(),
                        node -> node.compactEach(sstables, LZ4),
                        wall,
                        cpu);
            }
            compare("flush of a memtable, " + LZ4, turns, 2 * length.turns(), node -> node.flush(LZ4), wall, cpu);
        }
        return List.of(
                measurement(
                        "Whole node: compactions and flushes, " + release.version(),
                        sstables + ", chunks of 16 KiB, no throttle, files on "
                                + Files.getFileStore(folder).type() + ". The data files of both have the same bytes. "
                                + String.join(" ", limits),
                        wall),
                measurement(
                        "Whole node: CPU time of compactions and flushes, " + release.version(),
                        "The same turns; of the whole process.",
                        cpu));
    }

    private Measurement measurement(String title, String note, List<Case> rows) {
        return new Measurement("async_sstable_writer", title, note, release.version(), "s", Better.LESS, rows);
    }

    /** Gives back how many times as fast ours is, by the medians. */
    private static double compare(
            String name,
            Turns<CompactingNode> turns,
            int count,
            Turns.Turn<CompactingNode, Duration> work,
            List<Case> wall,
            List<Case> cpu)
            throws IOException, InterruptedException {
        Map<Variant, List<Took>> took = turns.take(WARM_UPS, count, node -> {
            Duration cpuBefore = node.cpuTime();
            double seconds = work.of(node).toNanos() / 1e9;
            return new Took(seconds, node.cpuTime().minus(cpuBefore).toNanos() / 1e9, node.digests());
        });
        List<List<String>> digests = took.values().stream()
                .flatMap(List::stream)
                .map(Took::digests)
                .distinct()
                .toList();
        if (digests.size() != 1) {
            throw new IllegalStateException(name + " has not always made the same files: " + digests);
        }
        wall.add(Serving.row(name, took, Took::seconds));
        cpu.add(Serving.row(name, took, Took::cpuSeconds));
        double timesAsFast = median(took.get(Variant.STOCK)) / median(took.get(Variant.OURS));
        System.out.printf(Locale.ROOT, "[benchmarks] %s: %.2f times as fast%n", name, timesAsFast);
        return timesAsFast;
    }

    private String limit(
            String name, CompactingNode stock, Turns.Turn<CompactingNode, Duration> compaction, double timesAsFast)
            throws IOException, InterruptedException {
        CompactionProfile profile = new CompactionProfile(stock.node(), folder);
        compaction.of(stock);
        double share = profile.stopAndGetShareOfFlushing();
        double limit = 1 / Math.max(share, 1 - share);
        String sentence = String.format(
                Locale.ROOT,
                "%s: %.2f times as fast, by the medians; `doFlush` has %.1f %% of stock's compacting thread, so the limit is"
                        + " %.2f, of which that is %.0f %%.",
                name,
                timesAsFast,
                100 * share,
                limit,
                100 * timesAsFast / limit);
        System.out.println("[benchmarks] " + sentence);
        return sentence;
    }

    private static double median(List<Took> turns) {
        List<Double> sorted = turns.stream()
                .map(Took::seconds)
                .sorted(Comparator.naturalOrder())
                .toList();
        int middle = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }
}
