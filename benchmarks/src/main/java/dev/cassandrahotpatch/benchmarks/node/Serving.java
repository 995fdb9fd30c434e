/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import dev.cassandrahotpatch.it.CassandraNode;
import dev.cassandrahotpatch.it.CassandraRelease;
import dev.cassandrahotpatch.it.LockWaits;
import dev.cassandrahotpatch.it.Measurement;
import dev.cassandrahotpatch.it.Measurement.Better;
import dev.cassandrahotpatch.it.Measurement.Case;
import dev.cassandrahotpatch.it.Measurement.Variant;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;
import org.HdrHistogram.Histogram;

/** How nodes serve a workload: as much of it as they can, then at a rate that all can keep up with. */
final class Serving {
    private static final Duration LOCK_WAITS = Duration.ofSeconds(2);
    /** Of what stock serves at most: the load takes its part of the cores, too. */
    private static final double RATE = 0.5;

    private final CassandraRelease release;
    private final String patch;
    private final String title;
    private final String note;
    private final Supplier<Workload> workloads;
    private boolean lockWaits;

    Serving(CassandraRelease release, String patch, String title, String note, Supplier<Workload> workloads) {
        this.release = release;
        this.patch = patch;
        this.title = title;
        this.note = note;
        this.workloads = workloads;
    }

    /** Has waits for a cache's lock counted, too. */
    Serving countLockWaits() {
        lockWaits = true;
        return this;
    }

    /** A node, its workload, and the load of that. */
    private record Served(CassandraNode node, Load load) implements AutoCloseable {
        @Override
        public void close() {
            node.close();
        }
    }

    /** One turn at full load. */
    private record Full(double perSecond, ServerCounters used) {
        double perRequest(double amount, Duration turn) {
            return amount / (perSecond * turn.toMillis() / 1e3);
        }
    }

    List<Measurement> measure(WholeNodes.Length length) throws IOException, InterruptedException {
        try (Turns<Served> turns = Turns.start(this::start)) {
            Duration turn = length.turn();
            Map<Variant, List<Full>> full = turns.take(length.turns(), served -> {
                ServerCounters before = ServerCounters.of(served.node());
                double perSecond = served.load().asMuchAsPossible(turn);
                return new Full(perSecond, ServerCounters.of(served.node()).since(before));
            });
            double rate = RATE
                    * full.get(Variant.STOCK).stream()
                            .mapToDouble(Full::perSecond)
                            .average()
                            .orElseThrow();
            Map<Variant, List<Histogram>> latencies =
                    turns.take(length.turns(), served -> served.load().atRate(rate, turn));
            List<Measurement> measurements = new ArrayList<>(List.of(
                    table(
                            ": throughput",
                            note,
                            "requests/s",
                            Better.MORE,
                            "as much as possible",
                            full,
                            Full::perSecond),
                    new Measurement(
                            patch,
                            title + ": what a request costs the server",
                            "The same turns. All that its process used, divided by the requests; it does not depend on what"
                                    + " the load used.",
                            release.version(),
                            "a request",
                            Better.LESS,
                            List.of(
                                    row(
                                            "CPU, µs",
                                            full,
                                            of -> of.perRequest(of.used().cpuNanos() / 1e3, turn)),
                                    row(
                                            "bytes allocated",
                                            full,
                                            of -> of.perRequest(
                                                    (double) of.used().allocatedBytes(), turn)),
                                    row(
                                            "context switches",
                                            full,
                                            of -> of.perRequest(
                                                    (double) of.used().contextSwitches(), turn)),
                                    row(
                                            "GC, µs",
                                            full,
                                            of -> of.perRequest(of.used().gcMillis() * 1e3, turn)))),
                    new Measurement(
                            patch,
                            title + ": latency",
                            String.format(
                                    "At %,.0f requests a second, half of what stock can serve; a request that is sent late"
                                            + " counts from when it was due.",
                                    rate),
                            release.version(),
                            "µs",
                            Better.LESS,
                            List.of(
                                    percentile(50, latencies),
                                    percentile(99, latencies),
                                    percentile(99.9, latencies)))));
            if (lockWaits) {
                measurements.add(new Measurement(
                        patch,
                        title + ": waits for the cache's lock in getCapacity",
                        "As the flight recorder saw them, as much load as possible, one turn each.",
                        release.version(),
                        "in a million requests",
                        Better.LESS,
                        List.of(new Case("as much as possible", turns.take(1, Serving::lockWaitsPerMillion)))));
            }
            return measurements;
        }
    }

    private Served start(Variant variant) {
        CassandraNode node = PatchedNode.of(release, variant, patch).start();
        PatchedNode.awaitStarted(node, variant, patch);
        Workload workload = workloads.get();
        Workload.prepare(node, workload);
        return new Served(node, new Load(workload::next));
    }

    private static double lockWaitsPerMillion(Served served) throws IOException, InterruptedException {
        AtomicReference<Double> perSecond = new AtomicReference<>();
        long waits = LockWaits.inGetMaximum(
                served.node(), () -> perSecond.set(served.load().asMuchAsPossible(LOCK_WAITS)));
        return 1e6 * waits / (perSecond.get() * LOCK_WAITS.toSeconds());
    }

    private <T> Measurement table(
            String of,
            String about,
            String unit,
            Better better,
            String name,
            Map<Variant, List<T>> turns,
            ToDoubleFunction<T> figure) {
        return new Measurement(
                patch, title + of, about, release.version(), unit, better, List.of(row(name, turns, figure)));
    }

    private static Case percentile(double percentile, Map<Variant, List<Histogram>> turns) {
        return row("p" + percentile, turns, latencies -> latencies.getValueAtPercentile(percentile));
    }

    static <T> Case row(String name, Map<Variant, List<T>> turns, ToDoubleFunction<T> figure) {
        Map<Variant, List<Double>> samples = new EnumMap<>(Variant.class);
        turns.forEach((variant, results) ->
                samples.put(variant, results.stream().map(figure::applyAsDouble).toList()));
        return new Case(name, samples);
    }
}
