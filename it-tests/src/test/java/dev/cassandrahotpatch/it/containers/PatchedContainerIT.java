/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import static org.assertj.core.api.Assertions.assertThat;

import com.github.dockerjava.api.model.ContainerConfig;
import dev.cassandrahotpatch.it.HotpatchTable;
import dev.cassandrahotpatch.it.StartedNode;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;
import org.testcontainers.containers.Container.ExecResult;
import org.testcontainers.lifecycle.Startables;

/** The image that docker/Dockerfile makes, beside the stock image that it is made of: both serve before the tests begin. */
@Tag("containers")
@ParameterizedClass
@EnumSource(CassandraImage.class)
@Timeout(300)
class PatchedContainerIT {
    private static final double MEBIBYTE = 1 << 20;
    private static final long METASPACE_LIMIT_BYTES = 30_000_000;
    private static final long HEAP_LIMIT_BYTES = 10_000_000;
    private static final long MEMORY_LIMIT_BYTES = 1L << 30;
    private static final Pattern USED = Pattern.compile("\\bused: +(\\d+)");

    private static ContainerNode stock;
    private static ContainerNode patched;

    private final CassandraImage image;

    PatchedContainerIT(CassandraImage image) {
        this.image = image;
    }

    @BeforeParameterizedClassInvocation
    static void startNodes(CassandraImage image) {
        stock = new ContainerNode(image.stock()).withMemoryLimit(MEMORY_LIMIT_BYTES);
        patched = new ContainerNode(image.withAgent()).withMemoryLimit(MEMORY_LIMIT_BYTES);
        Startables.deepStart(stock, patched).join();
        StartedNode.assertServes(stock.cql());
        StartedNode.assertServes(patched.cql());
    }

    @AfterParameterizedClassInvocation
    static void stopNodes() {
        for (ContainerNode node : new ContainerNode[] {stock, patched}) {
            if (node != null) {
                node.stop();
            }
        }
    }

    @Test
    void theTableSaysWhatRunsAndWhyAndAStockNodeSaysNothing() {
        HotpatchTable table = patched.awaitTable();
        assertThat(table.state("cache_capacity")).isEqualTo(image.is40() ? "NOT_NEEDED" : "APPLIED");
        assertThat(table.state("connection_request_counter")).isEqualTo(image.is60() ? "APPLIED" : "NOT_NEEDED");
        assertThat(table.state("response_buffer_sizing")).isEqualTo(image.is60() ? "NOT_NEEDED" : "APPLIED");
        assertThat(table.state("async_sstable_writer")).isEqualTo("DISABLED");
        assertThat(table.rows().values())
                .allSatisfy(row -> assertThat(row.reason()).isNotBlank());
        assertThat(stock.getLogs()).doesNotContain("hotpatch");
    }

    @Test
    void theAgentsLineIsReadBeforeJamm() {
        assertThat(patched.jvmOptions())
                .filteredOn(option -> option.startsWith("-javaagent:"))
                .hasSize(2)
                .first()
                .isEqualTo(ContainerNode.AGENT_OPTION);
    }

    @Test
    void theImageHasTheJarAndTheLineAndNothingElse() {
        String options = "/etc/cassandra/jvm-server.options";
        // the entrypoint writes the container's address to cassandra.yaml
        String checksums =
                "cd / && find etc opt usr -type f ! -name cassandra.yaml ! -path etc/hosts ! -path etc/hostname"
                        + " ! -path etc/resolv.conf | sort | xargs md5sum";
        List<String> stockFiles =
                stock.run("bash", "-c", checksums).getStdout().lines().toList();
        assertThat(stockFiles).isNotEmpty();
        assertThat(patched.run("bash", "-c", checksums).getStdout().lines())
                .filteredOn(file -> !stockFiles.contains(file))
                .extracting(file -> file.replaceAll("^\\w+ +", "/"))
                .containsExactly(options, ContainerNode.AGENT_JAR);
        assertThat(patched.run("cat", options).getStdout())
                .isEqualTo(stock.run("cat", options).getStdout() + "\n" + ContainerNode.AGENT_OPTION + "\n");
        assertThat(config(patched)).isEqualTo(config(stock));
    }

    @Test
    void nodetoolPrintsTheSameAsOnAStockImage() {
        for (String command : new String[] {"version", "status", "info", "no-such-command"}) {
            ExecResult expected = stock.nodetool(command);
            ExecResult found = patched.nodetool(command);
            assertThat(found.getExitCode())
                    .as("exit code of nodetool %s", command)
                    .isEqualTo(expected.getExitCode());
            assertThat(withoutMeasures(found.getStdout()))
                    .as("what nodetool %s prints", command)
                    .isEqualTo(withoutMeasures(expected.getStdout()));
            assertThat(found.getStderr()).as("errors of nodetool %s", command).isEqualTo(expected.getStderr());
        }
    }

    @Test
    void aPatchCanBeTakenOutAndPutBackFromInside() {
        String bean = "org.apache.cassandra.hotpatch:type=Patch,name="
                + (image.is40() ? "response_buffer_sizing" : "cache_capacity");
        try {
            assertThat(patched.nodetool("sjk", "mx", "-b", bean, "-mc", "-op", "disable")
                            .getStdout())
                    .contains("DISABLED");
            assertThat(patched.nodetool("sjk", "mx", "-b", bean, "-mg", "-f", "State")
                            .getStdout())
                    .contains("DISABLED");
        } finally {
            assertThat(patched.nodetool("sjk", "mx", "-b", bean, "-mc", "-op", "enable")
                            .getStdout())
                    .contains("APPLIED");
        }
    }

    @Test
    void theMemoryLimitIsKeptAndTheAgentsShareIsSmall() {
        long metaspace = metaspace(patched) - metaspace(stock);
        long heap = heapInUse(patched) - heapInUse(stock);
        System.out.printf(
                "[it] %s: the agent has %.1f MiB of metaspace and %.1f MiB of heap; the container has had %.0f MiB at most,"
                        + " a stock one %.0f MiB%n",
                image, metaspace / MEBIBYTE, heap / MEBIBYTE, peak(patched) / MEBIBYTE, peak(stock) / MEBIBYTE);
        assertThat(metaspace).as("bytes of metaspace").isPositive().isLessThanOrEqualTo(METASPACE_LIMIT_BYTES);
        assertThat(heap).as("bytes of heap").isLessThanOrEqualTo(HEAP_LIMIT_BYTES);
        assertThat(peak(patched)).as("bytes of the container").isLessThanOrEqualTo(MEMORY_LIMIT_BYTES);
        assertThat(patched.isRunning()).isTrue();
        assertThat(patched.getCurrentContainerInfo().getState().getOOMKilled()).isFalse();
    }

    private static long metaspace(ContainerNode node) {
        return used(node, "java.lang:type=MemoryPool,name=Metaspace", "Usage");
    }

    /** After a collection; the least of some, as a node always has something under way. */
    private static long heapInUse(ContainerNode node) {
        return LongStream.generate(() -> {
                    node.nodetool("sjk", "mx", "-b", "java.lang:type=Memory", "-mc", "-op", "gc");
                    return used(node, "java.lang:type=Memory", "HeapMemoryUsage");
                })
                .limit(3)
                .min()
                .orElseThrow();
    }

    private static long used(ContainerNode node, String bean, String attribute) {
        String printed =
                node.nodetool("sjk", "mx", "-b", bean, "-mg", "-f", attribute).getStdout();
        Matcher used = USED.matcher(printed);
        assertThat(used.find()).as(printed).isTrue();
        return Long.parseLong(used.group(1));
    }

    /** The most bytes that the container has used, page cache included, in the files of either version of cgroups. */
    private static long peak(ContainerNode node) {
        return Long.parseLong(node.run(
                        "bash",
                        "-c",
                        "cat /sys/fs/cgroup/memory.peak 2> /dev/null || cat /sys/fs/cgroup/memory/memory.max_usage_in_bytes")
                .getStdout()
                .strip());
    }

    /** Addresses, ids, amounts and the width of columns are no two nodes' same. */
    private static String withoutMeasures(String printed) {
        return printed.replaceAll("\\b\\p{XDigit}{8}(-\\p{XDigit}{4}){3}-\\p{XDigit}{12}\\b", "<id>")
                .replaceAll("(\\d+(\\.\\d+)*|NaN)( (bytes|[KMG]iB))?", "<amount>")
                .replaceAll(" +", " ");
    }

    private static List<Object> config(ContainerNode node) {
        ContainerConfig config = ContainerEngine.client()
                .inspectImageCmd(node.getDockerImageName())
                .exec()
                .getConfig();
        return List.of(
                List.of(config.getEnv()),
                List.of(config.getEntrypoint()),
                List.of(config.getCmd()),
                String.valueOf(config.getUser()),
                String.valueOf(config.getVolumes()),
                String.valueOf(config.getWorkingDir()),
                List.of(config.getExposedPorts()));
    }
}
