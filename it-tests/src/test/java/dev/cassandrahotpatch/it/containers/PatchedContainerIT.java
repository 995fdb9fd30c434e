/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cassandrahotpatch.it.HotpatchTable;
import dev.cassandrahotpatch.it.StartedNode;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The image that docker/Dockerfile makes. */
@Tag("containers")
@Timeout(300)
class PatchedContainerIT {
    @Test
    void theNodeServesAndTheTableSaysWhatRuns() {
        try (ContainerNode node = new ContainerNode(CassandraImage.V4_1.withAgent())) {
            node.start();
            HotpatchTable table = node.awaitTable();
            assertThat(table.state("cache_capacity")).isEqualTo("APPLIED");
            StartedNode.assertServes(node.cql());
        }
    }
}
