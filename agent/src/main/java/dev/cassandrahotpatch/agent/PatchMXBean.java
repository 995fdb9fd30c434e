/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import java.util.Map;

/** One patch, as {@code org.apache.cassandra.hotpatch:type=Patch,name=<id>}. Any thread may call it. */
public interface PatchMXBean {
    /** What its name begins with; the patch's id follows. */
    String OBJECT_NAME_PREFIX = "org.apache.cassandra.hotpatch:type=Patch,name=";

    /** One of the states of {@link dev.cassandrahotpatch.transformers.PatchState}. */
    String getState();

    /** Why the patch is in that state, in plain words. */
    String getReason();

    /** When the patch came to that state, as ISO 8601 in UTC. */
    String getSince();

    /** The Cassandra ticket, as {@code CASSANDRA-12345}. */
    String getTicket();

    /** What the patch does, in one line. */
    String getSummary();

    /**
     * What the patch has counted since the JVM started, by name, as the meters {@code cassandra.hotpatch.<name>} have it.
     */
    Map<String, Double> getCounters();

    /**
     * Weaves the patch into the running node; does nothing where it is woven already.
     *
     * @return the patch's line of the table as it is now
     */
    String enable();

    /**
     * Takes the patch out of the running node, until it is enabled again or the node is restarted.
     *
     * @return the patch's line of the table as it is now
     */
    String disable();
}
