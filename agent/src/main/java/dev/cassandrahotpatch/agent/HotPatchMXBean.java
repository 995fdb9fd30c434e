/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import java.util.List;

/** The agent, as {@code org.apache.cassandra.hotpatch:type=HotPatch}. Any thread may call it. */
public interface HotPatchMXBean {
    /** The name that it is registered under; the patches' beans are there before it. */
    String OBJECT_NAME = "org.apache.cassandra.hotpatch:type=HotPatch";

    /** The agent's version. */
    String getVersion();

    /** The ids of the patches, in the table's order. */
    List<String> getPatches();

    /** A line for each patch, as in the log: {@code <id> <STATE> (<ticket>) <reason>}. */
    List<String> getTable();

    /** What made no sense in the agent's options, or is odd about this JVM. */
    List<String> getWarnings();
}
