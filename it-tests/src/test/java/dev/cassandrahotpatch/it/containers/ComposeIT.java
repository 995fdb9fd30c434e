/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import static org.assertj.core.api.Assertions.assertThat;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.metadata.Node;
import dev.cassandrahotpatch.it.CassandraNode;
import dev.cassandrahotpatch.it.HotpatchTable;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The README's tour of docker/compose.yaml: a stock node and two with the agent. */
@Tag("containers")
@Timeout(600)
class ComposeIT {
    private static final long COMMAND_LIMIT_MINUTES = 8;
    private static final String FAST_START =
            "-Dcassandra.ring_delay_ms=2000 -Dcassandra.skip_wait_for_gossip_to_settle=0"
                    + " -Dcassandra.superuser_setup_delay_ms=0";
    private static final String LISTENING = "Starting listening for CQL clients";

    private static List<String> compose;

    @BeforeAll
    static void startTheCluster() throws Exception {
        String image = CassandraImage.V4_1.stock();
        for (List<String> command : List.of(List.of("docker", "compose"), List.of("docker-compose"))) {
            List<String> version = new ArrayList<>(command);
            version.add("version");
            try {
                if (run(version, image).exit() == 0) {
                    compose = command;
                    break;
                }
            } catch (IOException notInstalled) {
                // the next one may be
            }
        }
        if (compose == null) {
            ContainerEngine.unavailable("there is neither docker compose nor docker-compose: install one of them");
        }
        long begun = System.nanoTime();
        compose("up", "-d", "--build");
        System.out.println("[it] docker compose up of a stock and two patched nodes took "
                + TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - begun) + " s");
    }

    @AfterAll
    static void removeTheCluster() throws Exception {
        if (compose != null) {
            compose("down", "--volumes");
        }
    }

    @Test
    void aNewcomerStartsLooksTogglesAndTakesOut() throws Exception {
        awaitLog("patched-2", LISTENING, 1);
        assertThat(compose("exec", "-T", "stock", "nodetool", "status").lines())
                .filteredOn(line -> line.startsWith("UN "))
                .hasSize(3);
        for (String node : List.of("patched-1", "patched-2")) {
            HotpatchTable table = HotpatchTable.in(compose("logs", "--no-color", node));
            assertThat(table.isComplete()).as("the table of %s", node).isTrue();
            assertThat(table.state("cache_capacity")).isEqualTo("APPLIED");
        }
        assertThat(compose("logs", "--no-color", "stock")).doesNotContain("[hotpatch]");
        assertEachPortServes();
        assertThat(metrics("patched-1")).contains("cassandra_hotpatch_patch_state");

        assertThat(compose(
                        "exec",
                        "-T",
                        "patched-1",
                        "nodetool",
                        "sjk",
                        "mx",
                        "-b",
                        "org.apache.cassandra.hotpatch:type=Patch,name=cache_capacity",
                        "-mc",
                        "-op",
                        "disable"))
                .contains("cache_capacity DISABLED");
        assertThat(HotpatchTable.in(compose("logs", "--no-color", "patched-1")).state("cache_capacity"))
                .isEqualTo("DISABLED");

        compose(
                "exec",
                "-T",
                "patched-2",
                "sed",
                "-i",
                "/cassandra-hotpatch/d",
                "/opt/cassandra/conf/jvm-server.options");
        String before = compose("logs", "--no-color", "patched-2");
        compose("restart", "patched-2");
        assertThat(awaitLog("patched-2", LISTENING, 2).substring(before.length()))
                .doesNotContain("[hotpatch]");
        assertEachPortServes();
    }

    @Test
    void theMonitoringProfileMountsWhatThereIs() throws Exception {
        String config = compose("--profile", "monitoring", "config");
        assertThat(config).contains("grafana-dashboard.json", "prometheus.yml");
        Matcher mounted = Pattern.compile("^\\s*(?:source:|-) (/\\S+?\\.(?:yml|json))\\b", Pattern.MULTILINE)
                .matcher(config);
        assertThat(mounted.results().map(match -> Path.of(match.group(1))))
                .hasSize(4)
                .allMatch(Files::isRegularFile);
    }

    private static void assertEachPortServes() {
        for (int port : new int[] {9042, 9043, 9044}) {
            InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
            try (CqlSession cql = CassandraNode.connect(address)) {
                // the driver would ask any of the three
                Node node = cql.getMetadata().getNodes().values().stream()
                        .filter(each -> each.getEndPoint().resolve().equals(address))
                        .findFirst()
                        .orElseThrow();
                assertThat(cql.execute(SimpleStatement.newInstance("SELECT host_id FROM system.local")
                                        .setNode(node))
                                .one()
                                .getUuid(0))
                        .as("the node at port %d", port)
                        .isEqualTo(node.getHostId());
            }
        }
    }

    private static String metrics(String node) throws Exception {
        return compose(
                "exec",
                "-T",
                node,
                "bash",
                "-c",
                "exec 3<> /dev/tcp/127.0.0.1/9500; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3");
    }

    /** Waits until a service's log has a text so many times. */
    private static String awaitLog(String service, String text, int times) throws Exception {
        long limit = System.nanoTime() + TimeUnit.MINUTES.toNanos(3);
        while (true) {
            String log = compose("logs", "--no-color", service);
            if (log.split(Pattern.quote(text), -1).length > times) {
                return log;
            }
            if (System.nanoTime() > limit) {
                throw new AssertionError(
                        "not " + times + " times \"" + text + "\" in the log of " + service + ":\n" + log);
            }
            TimeUnit.SECONDS.sleep(1);
        }
    }

    private static String compose(String... arguments) throws Exception {
        List<String> command = new ArrayList<>(compose);
        command.addAll(List.of("-p", "hotpatch-it", "-f", "compose.yaml"));
        command.addAll(List.of(arguments));
        Run run = run(command, CassandraImage.V4_1.stock());
        assertThat(run.exit()).as("%s printed:%n%s", command, run.printed()).isZero();
        return run.printed();
    }

    private record Run(int exit, String printed) {}

    private static Run run(List<String> command, String image) throws IOException, InterruptedException {
        Path printed = Files.createTempFile("compose-", ".txt");
        try {
            ProcessBuilder builder = new ProcessBuilder(command)
                    .directory(new File(System.getProperty("docker.folder")))
                    .redirectErrorStream(true)
                    .redirectOutput(printed.toFile());
            builder.environment().put("CASSANDRA_IMAGE", image);
            builder.environment().put("JVM_EXTRA_OPTS", FAST_START);
            Process process = builder.start();
            boolean ended = process.waitFor(COMMAND_LIMIT_MINUTES, TimeUnit.MINUTES);
            process.destroyForcibly();
            String text = Files.readString(printed, StandardCharsets.UTF_8);
            assertThat(ended)
                    .as("%s has had %d minutes, and printed:%n%s", command, COMMAND_LIMIT_MINUTES, text)
                    .isTrue();
            return new Run(process.exitValue(), text);
        } finally {
            Files.delete(printed);
        }
    }
}
