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
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;

/**
 * How fast compactions and flushes are with {@code async_sstable_writer}, beside stock, which must make files with the same bytes.
 *
 * <p>What the compilers make of the same code differs from JVM to JVM by a tenth and more, so the long form starts several pairs of
 * nodes. Of each pair, medians are compared, and the gain is the median of the pairs.
 *
 * <p>The patched node needs a little more CPU time than stock. Where it needs much more, its two threads have slowed each other, as
 * they may where two virtual processors share a core: then that pair has hardly had two idle cores.
 *
 * <p>How much a compaction can gain has a limit. Share is {@code doFlush}'s part of the compacting thread's wall time on the stock
 * node: what it takes in traced compactions, of what the others before them took. One of the two threads that a compaction then
 * has does {@code doFlush}, the other one the rest, so that it can't be faster than 1/max(share, 1-share).
 */
final class Compactions {
    private static final String LZ4 = "LZ4Compressor";
    private static final String ZSTD = "ZstdCompressor";

    /** Compactions, or flushes, of both nodes that do not count. */
    private static final int WARM_UPS = 3;

    /** Of new nodes: in each of their first compactions, compilers take a second and more from the core that the writer thread has. */
    private static final int WARM_UPS_OF_NEW_NODES = 6;

    /** The same, where there is an eighth to compact. */
    private static final int SHORT_WARM_UPS_OF_NEW_NODES = 12;

    /** Compactions of each pair of nodes that are traced. */
    private static final int TRACES = 3;

    private final CassandraRelease release;
    private final Path folder;

    Compactions(CassandraRelease release, Path folder) {
        this.release = release;
        this.folder = folder;
    }

    List<Measurement> measure(WholeNodes.Length length) throws IOException, InterruptedException {
        SSTables sstables = SSTables.write(release, folder, length.whole());
        List<Work> works = new ArrayList<>();
        for (String compressor : length.whole() ? List.of(LZ4, ZSTD) : List.of(LZ4)) {
            works.add(new Work(
                    "compaction of 8 SSTables, " + compressor, true, node -> node.compact(sstables, compressor)));
        }
        if (length.whole()) {
            works.add(new Work("8 compactions at once, " + LZ4, false, node -> node.compactEach(sstables, LZ4)));
        }
        works.add(new Work("flush of a memtable, " + LZ4, false, node -> node.flush(LZ4)));
        for (int pair = 0; pair < length.pairs(); pair++) {
            try (Turns<CompactingNode> turns = Turns.start(variant -> new CompactingNode(release, variant, folder))) {
                int warmUps = length.whole() ? WARM_UPS_OF_NEW_NODES : SHORT_WARM_UPS_OF_NEW_NODES;
                for (Work work : works) {
                    work.measure(turns, warmUps, length.turns());
                    warmUps = WARM_UPS;
                }
                for (Work work : works) {
                    if (work.limited) {
                        work.trace(turns.stock());
                    }
                }
            }
        }
        String gains = works.stream().map(Work::gain).collect(Collectors.joining(" "));
        System.out.println("[benchmarks] " + gains);
        return List.of(
                measurement(
                        "Whole node: compactions and flushes, " + release.version(),
                        sstables + ", chunks of 16 KiB, no throttle, files on "
                                + Files.getFileStore(folder).type() + ". The data files of both have the same bytes. "
                                + gains,
                        works.stream().map(work -> work.row(Took::seconds)).toList()),
                measurement(
                        "Whole node: CPU time of compactions and flushes, " + release.version(),
                        "The same turns; of the whole process.",
                        works.stream().map(work -> work.row(Took::cpuSeconds)).toList()));
    }

    private Measurement measurement(String title, String note, List<Case> rows) {
        return new Measurement("async_sstable_writer", title, note, release.version(), "s", Better.LESS, rows);
    }

    /** What one turn took. */
    private record Took(double seconds, double cpuSeconds, List<String> digests) {}

    /** What a pair of nodes gave: times as fast as stock, and times stock's CPU time. */
    private record Gain(double timesAsFast, double cpu) {
        static Gain of(Map<Variant, List<Took>> took) {
            List<Took> stock = took.get(Variant.STOCK);
            List<Took> ours = took.get(Variant.OURS);
            return new Gain(
                    median(stock, Took::seconds) / median(ours, Took::seconds),
                    median(ours, Took::cpuSeconds) / median(stock, Took::cpuSeconds));
        }

        @Override
        public String toString() {
            return String.format(Locale.ROOT, "%.2f (CPU time %.2f)", timesAsFast, cpu);
        }
    }

    /** Something that all pairs of nodes do, and what it took them. */
    private final class Work {
        private final String name;
        private final boolean limited;
        private final Turns.Turn<CompactingNode, Duration> turn;
        private final Map<Variant, List<Took>> took = new EnumMap<>(Variant.class);
        private final List<Double> shares = new ArrayList<>();
        private final List<Gain> gains = new ArrayList<>();
        /** Median of the pair that was measured last. */
        private double stockSeconds;

        Work(String name, boolean limited, Turns.Turn<CompactingNode, Duration> turn) {
            this.name = name;
            this.limited = limited;
            this.turn = turn;
        }

        void measure(Turns<CompactingNode> turns, int warmUps, int count) throws IOException, InterruptedException {
            Map<Variant, List<Took>> now = turns.take(warmUps, count, node -> {
                Duration cpuBefore = node.cpuTime();
                double seconds = turn.of(node).toNanos() / 1e9;
                return new Took(seconds, node.cpuTime().minus(cpuBefore).toNanos() / 1e9, node.digests());
            });
            now.forEach((variant, list) ->
                    took.computeIfAbsent(variant, none -> new ArrayList<>()).addAll(list));
            List<List<String>> digests = took.values().stream()
                    .flatMap(List::stream)
                    .map(Took::digests)
                    .distinct()
                    .toList();
            if (digests.size() != 1) {
                throw new IllegalStateException(name + " has not always made the same files: " + digests);
            }
            Gain gain = Gain.of(now);
            gains.add(gain);
            stockSeconds = median(now.get(Variant.STOCK), Took::seconds);
            System.out.println("[benchmarks] " + release.version() + ", " + name + ": " + gain + " times as fast");
        }

        /** After all that this pair of nodes is measured by. */
        void trace(CompactingNode stock) throws IOException, InterruptedException {
            CompactionTrace trace = new CompactionTrace(stock.node(), folder);
            for (int i = 0; i <= TRACES; i++) {
                trace.start();
                turn.of(stock);
                double seconds = trace.stopAndGetSecondsOfFlushing();
                if (i > 0) { // the first one has the traced method compiled
                    shares.add(seconds / stockSeconds);
                }
            }
        }

        Case row(ToDoubleFunction<Took> value) {
            return Serving.row(name, took, value);
        }

        String gain() {
            double timesAsFast = median(gains, Gain::timesAsFast);
            String gain = String.format(Locale.ROOT, "%s: %.2f times as fast", name, timesAsFast);
            if (gains.size() > 1) {
                gain += gains.stream()
                        .map(Gain::toString)
                        .collect(Collectors.joining(", ", ", by pairs of nodes ", ""));
            }
            if (limited) {
                double share = median(shares, Double::doubleValue);
                double limit = 1 / Math.max(share, 1 - share);
                gain += String.format(
                        Locale.ROOT,
                        "; `doFlush` has %.1f %% of stock's compacting thread, so the limit is %.2f, of which that is %.0f %%",
                        100 * share,
                        limit,
                        100 * timesAsFast / limit);
            }
            return gain + ".";
        }
    }

    private static <T> double median(List<T> list, ToDoubleFunction<T> value) {
        double[] sorted = list.stream().mapToDouble(value).sorted().toArray();
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
}
