/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Nodes on the Java that their stock image has, which is older than the one that runs the tests. */
@Timeout(180)
class OlderJavaIT {
    @Test
    void aNodeOnJava11HasItsPatches() throws Exception {
        try (CassandraNode node = StartedNode.of(CassandraNode.of(CassandraRelease.of("4.1.10"))
                .javaHome(JavaHome.of(11))
                .afterJamm(AgentJar.option()))) {
            HotpatchTable table = node.awaitTable();
            assertThat(table.state("cache_capacity")).isEqualTo("APPLIED");
            assertThat(table.state("response_buffer_sizing")).isEqualTo("APPLIED");
            StartedNode.assertServes(node);
        }
    }
}
