/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import dev.cassandrahotpatch.it.CassandraRelease;
import dev.cassandrahotpatch.it.Measurement;
import dev.cassandrahotpatch.it.Measurement.Better;
import dev.cassandrahotpatch.it.Measurement.Case;
import dev.cassandrahotpatch.it.Measurement.Variant;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What the agent costs a JVM that has Cassandra on its class path: time to start, metaspace and heap. */
final class AgentCost {
    static final String ID = "agent";

    private final CassandraRelease release;

    AgentCost(CassandraRelease release) {
        this.release = release;
    }

    List<Measurement> run(int starts) throws IOException, InterruptedException {
        System.out.println("[benchmarks] " + release + ": the agent itself");
        Map<Variant, List<Double>> millis = new EnumMap<>(Variant.class);
        Map<Variant, List<Double>> metaspace = new EnumMap<>(Variant.class);
        Map<Variant, List<Double>> heap = new EnumMap<>(Variant.class);
        for (int start = 0; start < starts; start++) {
            for (Variant variant : List.of(Variant.STOCK, Variant.OURS)) {
                Path printed = Files.createTempFile("started", ".txt");
                List<String> command = new ArrayList<>(List.of(Benchmarks.java(), "-Xmx1g", "-cp", classPath()));
                if (variant == Variant.OURS) {
                    command.addAll(Benchmarks.agentOptions());
                }
                command.addAll(List.of(Started.class.getName(), printed.toString()));
                long began = System.nanoTime();
                Benchmarks.run(command, "agent-" + variant);
                double took = (System.nanoTime() - began) / 1e6;
                List<String> bytes = Files.readAllLines(printed);
                Files.delete(printed);
                add(millis, variant, took);
                add(metaspace, variant, Double.parseDouble(bytes.get(0)) / 1024);
                add(heap, variant, Double.parseDouble(bytes.get(1)) / 1024);
            }
        }
        return List.of(
                measurement(
                        "Starting a JVM",
                        "A JVM that opens Cassandra's jars, looks at its memory, and ends. Ours has judged every patch's"
                                + " classes; it publishes nothing over JMX, for no Cassandra starts in it.",
                        "ms",
                        millis),
                measurement("Metaspace of that JVM", "Used, at its end.", "KiB", metaspace),
                measurement("Heap of that JVM", "Used, at its end, after a full collection.", "KiB", heap));
    }

    private String classPath() {
        return Stream.concat(Stream.of(JmhBenchmark.location(AgentCost.class)), Benchmarks.jars(release))
                .map(Path::toString)
                .collect(Collectors.joining(File.pathSeparator));
    }

    private static void add(Map<Variant, List<Double>> samples, Variant variant, double sample) {
        samples.computeIfAbsent(variant, any -> new ArrayList<>()).add(sample);
    }

    private Measurement measurement(String title, String note, String unit, Map<Variant, List<Double>> samples) {
        return new Measurement(
                ID,
                title,
                note,
                release.version(),
                unit,
                Better.LESS,
                List.of(new Case("without and with the agent", samples)));
    }

    /** The JVM that is started. */
    static final class Started {
        private Started() {}

        /** Writes bytes of metaspace and of heap into the file that is named. */
        @SuppressWarnings("SystemGc") // what is left after it is what is asked for
        public static void main(String[] arguments) throws IOException {
            // opens every jar, as any program that uses some of them does: the agent must not be charged with it
            if (Started.class.getResource("/no-such-resource") != null) {
                throw new IllegalStateException("somebody has put it there");
            }
            System.gc();
            long heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
            long metaspace = ManagementFactory.getMemoryPoolMXBeans().stream()
                    .filter(pool -> pool.getName().equals("Metaspace"))
                    .mapToLong(pool -> pool.getUsage().getUsed())
                    .sum();
            Files.writeString(Path.of(arguments[0]), metaspace + "\n" + heap + "\n");
        }
    }
}
