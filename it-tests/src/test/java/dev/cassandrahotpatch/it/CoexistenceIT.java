/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A node with the agents that operators add, before ours and behind it: all start, and each does its work. */
@Timeout(180)
class CoexistenceIT {
    private static final String JMX_EXPORTER = "io.prometheus.jmx:jmx_prometheus_javaagent:1.0.1";
    private static final String OPEN_TELEMETRY = "io.opentelemetry.javaagent:opentelemetry-javaagent:2.20.1";
    private static final Duration HTTP_LIMIT = Duration.ofSeconds(30);

    @TempDir
    Path folder;

    @ParameterizedTest(name = "{0}, ours {1} the others")
    @CsvSource({"4.1.10, before", "4.1.10, behind", "6.0-alpha2, before", "6.0-alpha2, behind"})
    void theJmxExporterAndOpenTelemetryWorkBesideOurs(String version, String place) throws Exception {
        int exporterPort = freePort();
        int ourPort = freePort();
        List<String> others =
                Stream.concat(jmxExporter(exporterPort), openTelemetry()).toList();
        String ours = AgentJar.option("prometheus.port=" + ourPort);
        CassandraNode.Builder builder = CassandraNode.of(CassandraRelease.of(version));
        if (place.equals("before")) {
            builder.beforeJamm(ours).afterJamm(others.toArray(String[]::new));
        } else {
            builder.beforeJamm(others.toArray(String[]::new)).afterJamm(ours);
        }
        try (CassandraNode node = StartedNode.of(builder)) {
            HotpatchTable table = node.awaitTable();
            boolean is60 = version.startsWith("6.0");
            assertThat(table.state("cache_capacity")).isEqualTo("APPLIED");
            assertThat(table.state("connection_request_counter")).isEqualTo(is60 ? "APPLIED" : "NOT_NEEDED");
            assertThat(table.state("response_buffer_sizing")).isEqualTo(is60 ? "NOT_NEEDED" : "APPLIED");
            StartedNode.assertServes(node);

            assertThat(get(exporterPort, "/metrics").body())
                    .as("what the JMX exporter sees of Cassandra")
                    .contains("org_apache_cassandra_metrics_");
            assertThat(node.stderr()).contains("opentelemetry-javaagent - version: 2.20.1");
            assertThat(get(ourPort, "/metrics").body())
                    .contains("cassandra_hotpatch_patch_state{patch=\"cache_capacity\",state=\"APPLIED\"} 1.0");
            assertThat(metricsOnTheDashboard())
                    .isNotEmpty()
                    .allSatisfy(metric ->
                            assertThat(get(ourPort, "/metrics").body()).contains("\n" + metric));
            assertThat(get(ourPort, "/metrics/more").statusCode()).isEqualTo(404);
            assertThat(get(ourPort, "/").statusCode()).isEqualTo(404);
        }
    }

    @ParameterizedTest(name = "{0}")
    @CsvSource("4.1.10")
    void aPortThatIsTakenIsAWarningAndTheNodeServes(String version) throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                CassandraNode node = StartedNode.of(CassandraNode.of(CassandraRelease.of(version))
                        .afterJamm(AgentJar.option("prometheus.port=" + taken.getLocalPort())))) {
            assertThat(node.awaitTable().state("cache_capacity")).isEqualTo("APPLIED");
            StartedNode.assertServes(node);
            assertThat(node.log())
                    .contains("no metrics for Prometheus on 127.0.0.1:" + taken.getLocalPort())
                    .contains("choose another cassandra.hotpatch.prometheus.port");
        }
    }

    /** What docker/grafana-dashboard.json asks Prometheus for. */
    private static Set<String> metricsOnTheDashboard() throws IOException {
        String dashboard = Files.readString(Path.of("..", "docker", "grafana-dashboard.json"));
        return Pattern.compile("cassandra_hotpatch_[a-z_]+")
                .matcher(dashboard)
                .results()
                .map(MatchResult::group)
                .collect(Collectors.toSet());
    }

    private Stream<String> jmxExporter(int port) throws IOException {
        Path configuration = Files.writeString(
                folder.resolve("exporter.yaml"), "rules:\n- pattern: 'org.apache.cassandra.metrics<type=Cache.*'\n");
        return Stream.of(
                "-javaagent:" + CassandraRelease.artifact(JMX_EXPORTER) + "=127.0.0.1:" + port + ":" + configuration);
    }

    private static Stream<String> openTelemetry() {
        return Stream.of(
                "-javaagent:" + CassandraRelease.artifact(OPEN_TELEMETRY),
                "-Dotel.traces.exporter=none",
                "-Dotel.metrics.exporter=none",
                "-Dotel.logs.exporter=none");
    }

    private static HttpResponse<String> get(int port, String path) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                .timeout(HTTP_LIMIT)
                .build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }
}
