/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * The main job, for somebody who wants to see it: the same Cassandra started as it is and with the agent, the same reads and
 * the same compaction on both, and what was measured side by side. {@code mvn -Pdemo verify} runs it.
 */
public final class Demo {
    private static final int ROUNDS = 2;
    private static final Pattern READY = Pattern.compile("ready after (\\d+) ms");

    private final CassandraRelease release = CassandraRelease.of(System.getProperty("demo.release", "4.1.10"));
    private final String agent = "-javaagent:" + System.getProperty("agent.jar");
    private final List<Long> stockStarts = new ArrayList<>();
    private final List<Long> patchedStarts = new ArrayList<>();
    private final List<Long> agentStarts = new ArrayList<>();

    private Demo() {}

    /** Runs the demo; takes no arguments. */
    public static void main(String[] arguments) throws Exception {
        new Demo().run();
    }

    private void run() throws Exception {
        long began = System.nanoTime();
        say(release + ", stock and with the agent in turn, on Java " + System.getProperty("java.version") + ", "
                + Runtime.getRuntime().availableProcessors() + " cores; the load runs on the same cores");
        startOnly(false);
        startOnly(true);
        List<Round> stock = new ArrayList<>();
        List<Round> patched = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            stock.add(measure(false));
            patched.add(measure(true));
        }
        print(stock, patched);
        say("done in " + Duration.ofNanos(System.nanoTime() - began).toSeconds() + " s");
    }

    private CassandraNode start(boolean withAgent) {
        CassandraNode.Builder node = CassandraNode.of(release);
        if (withAgent) {
            node.afterJamm(agent, "-Dcassandra.hotpatch.async_sstable_writer=true");
        }
        node.yaml("compaction_throughput" + (release.version().startsWith("4.0") ? "_mb_per_sec: 0" : ": 0MiB/s"));
        CassandraNode started = node.start();
        long millis = started.awaitCql().toMillis();
        (withAgent ? patchedStarts : stockStarts).add(millis);
        if (withAgent) {
            Matcher ready = READY.matcher(started.stderr());
            if (ready.find()) {
                agentStarts.add(Long.parseLong(ready.group(1)));
            }
        }
        say(name(withAgent) + ": started, CQL after " + millis + " ms");
        return started;
    }

    private void startOnly(boolean withAgent) {
        try (CassandraNode node = start(withAgent)) {
            say(name(withAgent) + ": stopping process " + node.pid());
        }
    }

    /** What was measured on one node. */
    private record Round(ReadWorkload.Result reads, double compactionMillis) {}

    private Round measure(boolean withAgent) throws IOException, InterruptedException {
        try (CassandraNode node = start(withAgent)) {
            if (withAgent) {
                HotpatchTable table = node.awaitTable();
                say("the table in its system.log:");
                table.rows()
                        .forEach((id, row) -> System.out.println(
                                "    " + id + " " + row.state() + " (" + row.ticket() + ") " + row.reason()));
            }
            Consumer<String> progress = step -> say(name(withAgent) + ": " + step);
            ReadWorkload.Result reads = new ReadWorkload(node, progress).run();
            return new Round(reads, new CompactionWorkload(node, progress).run());
        }
    }

    private void print(List<Round> stock, List<Round> patched) {
        System.out.println();
        System.out.printf("  %-45s %22s %22s   %s%n", "", "stock", "patched", "patched/stock");
        row("reads/s", stock, patched, round -> round.reads().readsPerSecond());
        row(
                "bytes allocated per read, in the server",
                stock,
                patched,
                round -> round.reads().bytesPerRead());
        row(
                "lock waits in getCapacity per million reads",
                stock,
                patched,
                round -> round.reads().waitsPerMillion());
        row("compaction of 8 SSTables, ms", stock, patched, Round::compactionMillis);
        row("start to CQL, ms", stockStarts, patchedStarts, Long::doubleValue);
        System.out.printf(
                "  %-45s %22s %22s%n",
                "  of which the agent's premain, ms", "", numbers(agentStarts, Long::doubleValue));
        System.out.println();
    }

    private static <T> void row(String what, List<T> stock, List<T> patched, ToDoubleFunction<T> figure) {
        List<String> ratios = new ArrayList<>();
        for (int round = 0; round < stock.size(); round++) {
            double base = figure.applyAsDouble(stock.get(round));
            double ratio = figure.applyAsDouble(patched.get(round)) / base;
            ratios.add(base == 0 ? "-" : String.format(Locale.ROOT, "%.2f", ratio));
        }
        System.out.printf(
                "  %-45s %22s %22s   %s%n",
                what, numbers(stock, figure), numbers(patched, figure), String.join(" ", ratios));
    }

    private static <T> String numbers(List<T> values, ToDoubleFunction<T> figure) {
        return values.stream()
                .map(value -> String.format(Locale.ROOT, "%,.0f", figure.applyAsDouble(value)))
                .collect(Collectors.joining(" "));
    }

    private static String name(boolean withAgent) {
        return withAgent ? "patched" : "stock";
    }

    private static void say(String line) {
        System.out.println("[demo] " + line);
    }
}
