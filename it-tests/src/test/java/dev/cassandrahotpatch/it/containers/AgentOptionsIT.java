/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cassandrahotpatch.it.HotpatchTable;
import dev.cassandrahotpatch.it.StartedNode;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** How the agent and its switches are given to a container, other than by an image of its own. */
@Tag("containers")
@Timeout(300)
class AgentOptionsIT {
    @ParameterizedTest
    @EnumSource(names = {"V4_1", "V4_1_3", "V6_0"})
    void jvmExtraOptsTakesTheAgentBehindJammAndItsSwitches(CassandraImage image) {
        try (ContainerNode node = new ContainerNode(image.stock())
                .withAgentJar()
                // readable is enough: it need not be Cassandra's own
                .withPreparation(
                        "chown 12345:12345 " + ContainerNode.AGENT_JAR + " && chmod 444 " + ContainerNode.AGENT_JAR)
                .withExtraOptions(
                        ContainerNode.AGENT_OPTION,
                        "-Dcassandra.hotpatch.cache_capacity=false",
                        "-Dcassandra.hotpatch.async_sstable_writer=true")) {
            node.start();
            HotpatchTable table = node.awaitTable();
            assertThat(table.state("cache_capacity")).isEqualTo("DISABLED");
            assertThat(table.reason("cache_capacity")).contains("-Dcassandra.hotpatch.cache_capacity=false");
            assertThat(table.state("async_sstable_writer")).isIn("APPLIED", "WAITING");
            assertThat(table.state("connection_request_counter")).isEqualTo(image.is60() ? "APPLIED" : "NOT_NEEDED");
            assertThat(table.state("response_buffer_sizing")).isEqualTo(image.is60() ? "NOT_NEEDED" : "APPLIED");
            assertThat(node.jvmOptions())
                    .filteredOn(option -> option.startsWith("-javaagent:"))
                    .hasSize(2)
                    .last()
                    .isEqualTo(ContainerNode.AGENT_OPTION);
            StartedNode.assertServes(node.cql());
        }
    }

    @Test
    void theOptionFileTakesTheAgentAndItsSwitches() {
        try (ContainerNode node = new ContainerNode(CassandraImage.V4_1.stock())
                .withAgentJar()
                .withServerOptions(
                        ContainerNode.AGENT_OPTION,
                        "# -Dcassandra.hotpatch.cache_capacity=false",
                        "-Dcassandra.hotpatch.response_buffer_sizing=false",
                        "-Dcassandra.hotpatch.async_writer=true")) {
            node.start();
            HotpatchTable table = node.awaitTable();
            assertThat(table.state("cache_capacity")).isEqualTo("APPLIED");
            assertThat(table.state("response_buffer_sizing")).isEqualTo("DISABLED");
            assertThat(table.reason("response_buffer_sizing"))
                    .contains("-Dcassandra.hotpatch.response_buffer_sizing=false");
            assertThat(table.state("async_sstable_writer")).isEqualTo("DISABLED");
            assertThat(node.getLogs().lines())
                    .anyMatch(line -> line.contains("[hotpatch] warning: -Dcassandra.hotpatch.async_writer=true"));
            StartedNode.assertServes(node.cql());
        }
    }
}
