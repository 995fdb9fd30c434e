/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import dev.cassandrahotpatch.it.Measurement;
import dev.cassandrahotpatch.it.Measurement.Better;
import dev.cassandrahotpatch.it.Measurement.Case;
import dev.cassandrahotpatch.it.Measurement.Variant;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.commons.math3.distribution.TDistribution;
import org.apache.commons.math3.stat.descriptive.SummaryStatistics;
import org.commonmark.ext.gfm.tables.TablesExtension;
import org.commonmark.parser.Parser;
import org.commonmark.renderer.html.HtmlRenderer;
import org.knowm.xchart.CategoryChart;
import org.knowm.xchart.CategoryChartBuilder;
import org.knowm.xchart.VectorGraphicsEncoder;
import org.knowm.xchart.VectorGraphicsEncoder.VectorGraphicsFormat;
import org.knowm.xchart.XYChart;
import org.knowm.xchart.XYChartBuilder;
import org.knowm.xchart.XYSeries.XYSeriesRenderStyle;
import org.knowm.xchart.internal.chartpart.Chart;
import org.knowm.xchart.style.Styler.LegendPosition;
import org.openjdk.jmh.util.Version;

/**
 * Makes a page of all {@link Measurement}s in {@code results.folder}: {@code results.md}, and the same with charts as
 * {@code index.html}, in {@code report.folder}. With {@code benchmarks.record=true} the Markdown is kept as
 * {@code record.file}, too.
 */
public final class Report {
    private static final double CONFIDENCE = 0.95;
    /** Values further apart than this are drawn on a logarithmic axis. */
    private static final double WIDE = 30;
    /** As many letters have room below a chart, side by side. */
    private static final int LETTERS = 80;

    private record Section(String patch, String text) {}

    private static final List<Section> SECTIONS = List.of(
            new Section(
                    "cache_capacity", "CASSANDRA-19429: reads a cache's capacity without Caffeine's eviction lock."),
            new Section(
                    "connection_request_counter",
                    "CASSANDRA-21569: counts a connection's requests in a `LongAdder`, so that listing clients is cheap."),
            new Section(
                    "response_buffer_sizing",
                    "CASSANDRA-21285: starts response buffers at the size learnt from the table's earlier responses."),
            new Section(
                    "async_sstable_writer",
                    "CASSANDRA-21655: compresses and writes SSTable chunks off the compaction thread. Off by default. The"
                            + " ticket's own change is in no release that could be run beside it."),
            new Section(
                    AgentCost.ID,
                    "What the agent itself costs. A patch that is off costs nothing: its class is not touched (tested)."));

    private final Path folder = Path.of(System.getProperty("report.folder"));
    private final List<Measurement> measurements = Measurement.readAll(Path.of(System.getProperty("results.folder")));
    private final StringBuilder markdown = new StringBuilder();
    private int charts;

    private Report() {}

    /** Takes no arguments. */
    public static void main(String[] arguments) throws IOException {
        new Report().write();
    }

    private void write() throws IOException {
        Files.createDirectories(folder);
        line("# Cassandra Hotpatch: what was measured");
        line("");
        describeTheRun();
        for (Section section : SECTIONS) {
            List<Measurement> some = measurements.stream()
                    .filter(measurement -> measurement.patch().equals(section.patch()))
                    .toList();
            if (!some.isEmpty()) {
                line("## " + section.patch());
                line("");
                line(section.text());
                line("");
                for (Measurement measurement : some) {
                    describe(measurement);
                }
                if (section.patch().equals("cache_capacity")) {
                    predict();
                }
            }
        }
        describeHowToRepeat();

        String withCharts = markdown.toString();
        String withoutCharts = withCharts.replaceAll("(?m)^!\\[.*\n\n", "");
        Files.writeString(folder.resolve("results.md"), withoutCharts);
        Files.writeString(folder.resolve("index.html"), html(withCharts));
        if (Boolean.getBoolean("benchmarks.record")) {
            Files.writeString(Path.of(System.getProperty("record.file")), withoutCharts);
        }
        System.out.println("[benchmarks] " + folder.resolve("index.html"));
    }

    private void line(String line) {
        markdown.append(line).append('\n');
    }

    private void describeTheRun() throws IOException {
        line("Generated on " + LocalDate.now(ZoneOffset.UTC) + " by the "
                + (Boolean.getBoolean("benchmarks.long") ? "long" : "quick") + " form of the benchmarks.");
        line("");
        line("| | |");
        line("|---|---|");
        line("| Machine | " + Runtime.getRuntime().availableProcessors() + " cores, "
                + procLine("cpuinfo", "model name") + ", "
                + Long.parseLong(procLine("meminfo", "MemTotal").replaceAll("\\D", "")) / (1 << 20)
                + " GiB of memory |");
        line("| System | " + System.getProperty("os.name") + " " + kernel() + ", " + System.getProperty("os.arch")
                + " |");
        line("| Java | " + System.getProperty("java.vm.name") + " " + System.getProperty("java.runtime.version")
                + " |");
        line("| Cassandra | "
                + measurements.stream()
                        .map(Measurement::release)
                        .collect(Collectors.toCollection(TreeSet::new))
                        .stream()
                        .collect(Collectors.joining(", "))
                + ", from Maven Central's jars |");
        line("| JMH | " + Version.getPlainVersion() + " |");
        line("");
        line(
                "**Stock** is the release as it is, **ours** the same with the agent, **upstream** what the ticket's own fix does,"
                        + " written after it. All in one row come from the same run, stock and patched in turn. A value is the mean, with"
                        + " half of its 95% confidence interval after ±; where the intervals of stock and ours overlap, the ratio"
                        + " says so.");
        line("");
    }

    /** The kernel's version without what whoever has built it adds. */
    private static String kernel() {
        return System.getProperty("os.version").replaceFirst("[^0-9.].*", "");
    }

    private static String procLine(String file, String key) throws IOException {
        try (Stream<String> lines = Files.lines(Path.of("/proc", file))) {
            return lines.filter(line -> line.startsWith(key))
                    .map(line -> line.substring(line.indexOf(':') + 1).strip())
                    .findFirst()
                    .orElse("(unknown)");
        }
    }

    private void describe(Measurement measurement) throws IOException {
        List<Variant> variants = Arrays.stream(Variant.values())
                .filter(variant -> measurement.cases().stream()
                        .anyMatch(row -> row.samples().containsKey(variant)))
                .toList();
        boolean compared = variants.containsAll(List.of(Variant.STOCK, Variant.OURS));
        line("### " + measurement.title());
        line("");
        line(measurement.note());
        line("");
        line("Cassandra " + measurement.release() + "; " + measurement.unit() + ", "
                + (measurement.better() == Better.MORE ? "more" : "less") + " is better.");
        line("");
        line("| |"
                + variants.stream().map(variant -> " " + name(variant) + " |").collect(Collectors.joining())
                + (compared ? " ours / stock |" : ""));
        line("|---|" + "---:|".repeat(variants.size() + (compared ? 1 : 0)));
        for (Case row : measurement.cases()) {
            StringBuilder cells = new StringBuilder("| " + row.name() + " |");
            for (Variant variant : variants) {
                cells.append(' ')
                        .append(Optional.ofNullable(row.samples().get(variant))
                                .map(Spread::of)
                                .map(Spread::toString)
                                .orElse(""))
                        .append(" |");
            }
            line(cells + (compared ? " " + ratio(row) + " |" : ""));
        }
        line("");
        chart(measurement, variants);
    }

    private static String name(Variant variant) {
        return variant.name().toLowerCase(Locale.ROOT);
    }

    private static String ratio(Case row) {
        if (!row.samples().keySet().containsAll(List.of(Variant.STOCK, Variant.OURS))) {
            return "";
        }
        Spread stock = Spread.of(row.samples().get(Variant.STOCK));
        Spread ours = Spread.of(row.samples().get(Variant.OURS));
        return (stock.mean() == 0 ? "" : number(ours.mean() / stock.mean()))
                + (ours.overlaps(stock) ? ", within the spread" : "");
    }

    /**
     * The mean of some samples.
     *
     * @param half of its confidence interval; 0 where there is but one sample
     */
    private record Spread(double mean, double half) {
        static Spread of(List<Double> samples) {
            SummaryStatistics statistics = new SummaryStatistics();
            samples.forEach(statistics::addValue);
            double n = statistics.getN();
            double half = n < 2
                    ? 0
                    : new TDistribution(n - 1).inverseCumulativeProbability((1 + CONFIDENCE) / 2)
                            * statistics.getStandardDeviation()
                            / Math.sqrt(n);
            return new Spread(statistics.getMean(), half);
        }

        boolean overlaps(Spread other) {
            return half + other.half > 0 && Math.abs(mean - other.mean) <= half + other.half;
        }

        @Override
        public String toString() {
            return number(mean) + (half == 0 ? "" : " ± " + number(half));
        }
    }

    /** With three digits or more. */
    private static String number(double value) {
        double size = Math.abs(value);
        String format = size >= 100 || size == 0
                ? "%,.0f"
                : size >= 10 ? "%.1f" : size >= 1 ? "%.2f" : size >= 0.01 ? "%.3f" : "%.2g";
        return String.format(Locale.ROOT, format, value);
    }

    private void chart(Measurement measurement, List<Variant> variants) throws IOException {
        CategoryChart chart = new CategoryChartBuilder()
                .width(900)
                .height(420)
                .yAxisTitle(measurement.unit())
                .build();
        List<String> names = measurement.cases().stream().map(Case::name).toList();
        List<Double> means = new ArrayList<>();
        for (Variant variant : variants) {
            List<Double> values = new ArrayList<>();
            for (Case row : measurement.cases()) {
                List<Double> samples = row.samples().get(variant);
                values.add(samples == null ? null : Spread.of(samples).mean());
            }
            values.stream().filter(value -> value != null).forEach(means::add);
            chart.addSeries(name(variant), names, values);
        }
        double least = means.stream().mapToDouble(value -> value).min().orElseThrow();
        double most = means.stream().mapToDouble(value -> value).max().orElseThrow();
        if (least > 0 && most / least > WIDE) {
            chart.getStyler().setYAxisLogarithmic(true);
            chart.getStyler().setYAxisMin(Math.pow(10, Math.floor(Math.log10(least))));
        }
        chart.getStyler().setXAxisLabelRotation(String.join("", names).length() > LETTERS ? 20 : 0);
        chart.getStyler().setLegendPosition(LegendPosition.OutsideE);
        save(chart, measurement.title());
    }

    private void save(Chart<?, ?> chart, String title) throws IOException {
        chart.getStyler().setChartBackgroundColor(java.awt.Color.WHITE);
        charts++;
        String file = "chart-" + charts + ".svg";
        VectorGraphicsEncoder.saveVectorGraphic(chart, folder.resolve(file).toString(), VectorGraphicsFormat.SVG);
        line("![" + title + "](" + file + ")");
        line("");
    }

    private void predict() throws IOException {
        Optional<Case> one = find(ContentionModel.CAPACITY, "1 thread");
        Optional<Case> two = find(ContentionModel.CAPACITY, "2 threads");
        Optional<Case> handOver = find(ContentionModel.HAND_OVER, "2 threads");
        if (one.isEmpty() || two.isEmpty() || handOver.isEmpty()) {
            return;
        }
        ContentionModel model = new ContentionModel(stock(one.get()), stock(two.get()), stock(handOver.get()));
        line("### Prediction: stock on more cores");
        line("");
        line(
                "**A prediction, not a measurement.** A queueing model of the eviction lock on 8 to 192 cores, beside the two points"
                        + " that the ticket measured (4.1.3, 96 cores). It assumes that an operation takes the lock once; that without it"
                        + " an operation takes a core as long as in the ticket's run with its diff, so those points lie on the model by"
                        + " construction; and that handing the lock over takes what it took on this machine. What it is worth is the"
                        + " distance between its lines: the truth depends on how many of the waiting threads sleep. Part of the ticket's gain"
                        + " may be its key cache, which its diff keeps empty.");
        line("");
        line("| the lock is taken for | ns for each operation | so no machine does more than |");
        line("|---|---:|---:|");
        model.lockSeconds()
                .forEach((when, seconds) ->
                        line("| " + when + " | " + number(seconds * 1e9) + " | " + number(1 / seconds) + " ops/s |"));
        line("");
        line("| thousand ops/s on cores |"
                + ContentionModel.CORES.stream()
                        .map(cores -> " " + cores + " |")
                        .collect(Collectors.joining())
                + " the ticket's stock, with 96 |");
        line("|---|" + "---:|".repeat(ContentionModel.CORES.size() + 1));
        XYChart chart = new XYChartBuilder()
                .width(900)
                .height(480)
                .xAxisTitle("cores")
                .yAxisTitle("thousand ops/s (prediction)")
                .build();
        for (ContentionModel.Machine machine : ContentionModel.TICKET) {
            model.contendedSeconds().forEach((when, seconds) -> {
                List<Double> predicted = ContentionModel.predict(machine, seconds).stream()
                        .map(value -> value / 1e3)
                        .toList();
                line("| " + machine.name() + ", " + when + " |"
                        + predicted.stream()
                                .map(value -> " " + number(value) + " |")
                                .collect(Collectors.joining())
                        + " "
                        + number(machine.stock() / 1e3) + " |");
                chart.addSeries(machine.name() + ", " + when, ContentionModel.CORES, predicted);
            });
            points(chart, "ticket, " + machine.name() + ", stock and patched", machine);
        }
        line("");
        chart.getStyler().setLegendPosition(LegendPosition.OutsideE);
        save(chart, "Prediction: stock on more cores");
    }

    private static void points(XYChart chart, String name, ContentionModel.Machine machine) {
        List<Integer> cores = List.of(machine.cores(), machine.cores());
        chart.addSeries(name, cores, List.of(machine.stock() / 1e3, machine.patched() / 1e3))
                .setXYSeriesRenderStyle(XYSeriesRenderStyle.Scatter);
    }

    private Optional<Case> find(String title, String name) {
        return measurements.stream()
                .filter(measurement -> measurement.title().equals(title))
                .map(Measurement::cases)
                .flatMap(Collection::stream)
                .filter(row -> row.name().equals(name))
                .findFirst();
    }

    private static double stock(Case row) {
        return Spread.of(row.samples().get(Variant.STOCK)).mean();
    }

    private void describeHowToRepeat() {
        line("## To repeat it");
        line("");
        line("With JDK 17 and Maven:");
        line("");
        line("    mvn -Pbenchmarks verify                              # all of this, the quick form");
        line("    mvn -Pbenchmarks verify -Dbenchmarks.long            # more rounds and iterations");
        line("    mvn -Pbenchmarks verify -Dbenchmarks.only=<patch>    # one section");
        line("    mvn -Pbenchmarks verify -Dbenchmarks.record          # keeps the tables in benchmarks/RESULTS.md");
        line("");
        line("The page with charts is `benchmarks/target/report/index.html`; what every JVM printed is in"
                + " `benchmarks/target/logs/`.");
    }

    private static String html(String markdown) {
        List<TablesExtension> tables = List.of((TablesExtension) TablesExtension.create());
        String body = HtmlRenderer.builder()
                .extensions(tables)
                .build()
                .render(Parser.builder().extensions(tables).build().parse(markdown));
        return """
                <!DOCTYPE html>
                <html lang="en">
                <head>
                <meta charset="utf-8">
                <title>Cassandra Hotpatch: what was measured</title>
                <style>
                body { font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
                table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
                th, td { border-bottom: 1px solid #ddd; padding: .25rem .75rem }
                th:first-child, td:first-child { text-align: left }
                img { max-width: 100%% }
                pre { background: #f6f6f6; padding: .75rem; overflow-x: auto }
                </style>
                </head>
                <body>
                %s</body>
                </html>
                """.formatted(body);
    }
}
