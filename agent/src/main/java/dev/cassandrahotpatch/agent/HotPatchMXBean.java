/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import java.util.List;

/** The agent, as {@code org.apache.cassandra.hotpatch:type=HotPatch}. Any thread may call it. */
public interface HotPatchMXBean {
    /** The agent's version. */
    String getVersion();

    /** A line for each patch, as in the log: {@code <id> <STATE> (<ticket>) <reason>}. */
    List<String> getTable();

    /** What made no sense in the agent's options, or is odd about this JVM. */
    List<String> getWarnings();
}
