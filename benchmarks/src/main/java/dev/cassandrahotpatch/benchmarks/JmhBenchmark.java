/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import dev.cassandrahotpatch.it.CassandraNode;
import dev.cassandrahotpatch.it.CassandraRelease;
import dev.cassandrahotpatch.it.Measurement;
import dev.cassandrahotpatch.it.Measurement.Better;
import dev.cassandrahotpatch.it.Measurement.Case;
import dev.cassandrahotpatch.it.Measurement.Variant;
import java.io.File;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import joptsimple.OptionParser;
import org.apache.commons.math3.util.FastMath;
import org.json.JSONArray;
import org.json.JSONObject;

/**
 * A JMH benchmark, the release whose jars it runs on, and the tables to make of what it prints. It runs in JVMs of its own: as
 * released, and with the agent, in turn. To be used by one thread.
 */
final class JmhBenchmark {
    private static final String PRIMARY = "";

    private record Table(String title, String metric, String unit, String note) {}

    private final String patch;
    private final String release;
    private final Class<?> type;
    private final Map<Variant, String> methods = new EnumMap<>(Variant.class);
    private final List<String> agentOptions = new ArrayList<>();
    private final List<Table> tables = new ArrayList<>();
    private int[] threads = {1};

    private JmhBenchmark(String patch, String release, Class<?> type) {
        this.patch = patch;
        this.release = release;
        this.type = type;
    }

    /** Begins a benchmark of a patch on a release; the class need not be loadable here. */
    static JmhBenchmark of(String patch, String release, Class<?> type) {
        return new JmhBenchmark(patch, release, type);
    }

    /** The method that calls the release's own code: run as released, and with the agent. */
    JmhBenchmark stockAndOurs(String method) {
        return only(Variant.STOCK, method).only(Variant.OURS, method);
    }

    /** A method that stands for one variant. */
    JmhBenchmark only(Variant variant, String method) {
        methods.put(variant, method);
        return this;
    }

    /** How many threads call the method; one, unless this is called. */
    JmhBenchmark threads(int... counts) {
        threads = counts;
        return this;
    }

    /** A JVM option for the JVMs with the agent. */
    JmhBenchmark agentOption(String option) {
        agentOptions.add(option);
        return this;
    }

    /** A table of what JMH measures. */
    JmhBenchmark table(String title, String note) {
        return table(title, PRIMARY, "", note);
    }

    /** A table of what JMH or the benchmark counts beside, of which less is better unless it is {@code hits}. */
    JmhBenchmark table(String title, String metric, String unit, String note) {
        tables.add(new Table(title, metric, unit, note));
        return this;
    }

    String patch() {
        return patch;
    }

    /** Runs all of it, and gives back one measurement a table. */
    List<Measurement> run(Benchmarks.Length length) throws IOException, InterruptedException {
        Map<Table, Map<String, Map<Variant, List<Double>>>> samples = new LinkedHashMap<>();
        Map<Table, JSONObject> firsts = new LinkedHashMap<>();
        for (int count : threads) {
            for (int round = 0; round < length.rounds(); round++) {
                for (boolean withAgent : new boolean[] {false, true}) {
                    for (JSONObject result : runJmh(count, withAgent, length)) {
                        Variant variant = variant(result.getString("benchmark"), withAgent);
                        for (Table table : tables) {
                            firsts.putIfAbsent(table, result);
                            samples.computeIfAbsent(table, any -> new LinkedHashMap<>())
                                    .computeIfAbsent(caseOf(result), any -> new EnumMap<>(Variant.class))
                                    .computeIfAbsent(variant, any -> new ArrayList<>())
                                    .addAll(samples(metric(result, table)));
                        }
                    }
                }
            }
        }
        return tables.stream()
                .map(table -> measurement(table, firsts.get(table), samples.get(table)))
                .toList();
    }

    private Measurement measurement(Table table, JSONObject first, Map<String, Map<Variant, List<Double>>> samples) {
        String unit = table.unit().isEmpty()
                ? metric(first, table).getString("scoreUnit").replace("us", "µs")
                : table.unit();
        boolean isRate =
                first.getString("mode").equals("thrpt") && table.metric().isEmpty();
        return new Measurement(
                patch,
                table.title(),
                table.note(),
                release,
                unit,
                isRate || table.metric().equals("hits") ? Better.MORE : Better.LESS,
                samples.entrySet().stream()
                        .map(entry -> new Case(entry.getKey(), entry.getValue()))
                        .toList());
    }

    private static JSONObject metric(JSONObject result, Table table) {
        return table.metric().isEmpty()
                ? result.getJSONObject("primaryMetric")
                : result.getJSONObject("secondaryMetrics").getJSONObject(table.metric());
    }

    private static List<Double> samples(JSONObject metric) {
        List<Double> samples = new ArrayList<>();
        for (Object fork : metric.getJSONArray("rawData")) {
            for (Object sample : (JSONArray) fork) {
                samples.add(((Number) sample).doubleValue());
            }
        }
        return samples;
    }

    private Variant variant(String benchmark, boolean withAgent) {
        String method = benchmark.substring(benchmark.lastIndexOf('.') + 1);
        return methodsIn(withAgent).entrySet().stream()
                .filter(entry -> entry.getValue().equals(method))
                .map(Map.Entry::getKey)
                .findFirst()
                .orElseThrow();
    }

    private Map<Variant, String> methodsIn(boolean withAgent) {
        Map<Variant, String> some = new EnumMap<>(methods);
        some.keySet().removeIf(variant -> withAgent != (variant == Variant.OURS));
        return some;
    }

    /** The row: threads where there are several counts of them, then the benchmark's parameters. */
    private String caseOf(JSONObject result) {
        List<String> parts = new ArrayList<>();
        JSONObject parameters = result.optJSONObject("params", new JSONObject());
        parameters.keySet().stream().sorted(Comparator.naturalOrder()).forEach(name -> {
            String value = parameters.getString(name);
            parts.add(value.matches("\\d+") ? counted(Integer.parseInt(value), words(name)) : value);
        });
        int count = result.getInt("threads");
        if (threads.length > 1 || parts.isEmpty()) {
            parts.add(counted(count, "threads"));
        }
        return String.join(", ", parts);
    }

    private static String counted(int count, String plural) {
        return count == 1
                ? "1 " + plural.substring(0, plural.length() - 1)
                : String.format(Locale.ROOT, "%,d ", count) + plural;
    }

    private static String words(String camelCase) {
        return camelCase.replaceAll("(?=[A-Z])", " ").toLowerCase(Locale.ROOT);
    }

    private List<JSONObject> runJmh(int count, boolean withAgent, Benchmarks.Length length)
            throws IOException, InterruptedException {
        Map<Variant, String> some = methodsIn(withAgent);
        if (some.isEmpty()) {
            return List.of();
        }
        String name = type.getSimpleName() + "." + String.join("+", some.values()) + ", " + counted(count, "threads")
                + ", " + (withAgent ? "with the agent" : "as released");
        System.out.println("[benchmarks] Cassandra " + release + ": " + name);
        Path results = Files.createTempFile("jmh", ".json");
        List<String> forkOptions = new ArrayList<>(CassandraNode.openModules());
        // response_buffer_sizing keeps arrays by the size of the heap, so it has to be that of a node; with a small
        // young
        // generation hardly any of it is ever used
        forkOptions.addAll(List.of("-Xms1g", "-Xmx8g", "-Xmn512m"));
        forkOptions.addAll(
                List.of("-Djmh.executor=CUSTOM", "-Djmh.executor.class=" + CassandraThreads.class.getName()));
        if (withAgent) {
            forkOptions.addAll(Benchmarks.agentOptions());
            forkOptions.addAll(agentOptions);
        }
        List<String> command = new ArrayList<>(List.of(Benchmarks.java(), "-cp", classPath()));
        command.add("org.openjdk.jmh.Main");
        command.add("^" + type.getName().replace(".", "\\.") + "\\.(" + String.join("|", some.values()) + ")$");
        command.addAll(List.of("-t", Integer.toString(count), "-f", "1", "-foe", "true", "-prof", "gc"));
        command.addAll(length.jmhOptions(count));
        command.addAll(List.of("-rf", "json", "-rff", results.toString()));
        command.addAll(List.of("-jvmArgs", String.join(" ", forkOptions)));
        Benchmarks.run(command, name.replaceAll("\\W+", "-"));
        JSONArray array = new JSONArray(Files.readString(results));
        Files.delete(results);
        return IntStream.range(0, array.length()).mapToObj(array::getJSONObject).toList();
    }

    /** These benchmarks, JMH and what it needs, and the release's jars; nothing of what this launcher has beside. */
    private String classPath() {
        Stream<Path> own = Stream.of(JmhBenchmark.class, org.openjdk.jmh.Main.class, OptionParser.class, FastMath.class)
                .map(JmhBenchmark::location);
        return Stream.concat(own, Benchmarks.jars(CassandraRelease.of(release)))
                .map(Path::toString)
                .collect(Collectors.joining(File.pathSeparator));
    }

    static Path location(Class<?> type) {
        try {
            return Path.of(
                    type.getProtectionDomain().getCodeSource().getLocation().toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }
}
