/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import dev.cassandrahotpatch.it.CassandraNode;
import dev.cassandrahotpatch.it.CassandraRelease;
import dev.cassandrahotpatch.it.Measurement.Variant;
import java.nio.file.Path;
import java.util.List;

/** Nodes that have one patch, or none. */
final class PatchedNode {
    private static final List<String> PATCHES =
            List.of("cache_capacity", "connection_request_counter", "response_buffer_sizing", "async_sstable_writer");

    private PatchedNode() {}

    /** Begins a node: stock, or with the agent and no other patch than this one. */
    static CassandraNode.Builder of(CassandraRelease release, Variant variant, String patch) {
        CassandraNode.Builder builder = CassandraNode.of(release);
        if (variant == Variant.OURS) {
            builder.afterJamm(
                    "-javaagent:" + Path.of(System.getProperty("agent.jar")).toAbsolutePath());
            PATCHES.forEach(id -> builder.afterJamm("-Dcassandra.hotpatch." + id + "=" + id.equals(patch)));
        }
        return builder;
    }

    /** Waits for a node that was begun by {@link #of}; fails if it has not the patch that it is to have. */
    static CassandraNode awaitStarted(CassandraNode node, Variant variant, String patch) {
        node.awaitCql();
        if (variant == Variant.OURS) {
            String state = node.awaitTable().state(patch);
            if (state.equals("REFUSED") || state.equals("FAILED") || state.equals("DISABLED")) {
                throw new IllegalStateException(patch + " is " + state + " in " + node);
            }
        }
        return node;
    }
}
