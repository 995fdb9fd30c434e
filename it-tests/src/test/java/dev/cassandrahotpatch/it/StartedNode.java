/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import static org.assertj.core.api.Assertions.assertThat;

import com.datastax.oss.driver.api.core.CqlSession;

/** What every test on a node does: start it, say how long that took, and see that it serves. */
public final class StartedNode {
    private StartedNode() {}

    /** Starts a node, waits until it takes clients and prints how long that took. */
    static CassandraNode of(CassandraNode.Builder builder) {
        CassandraNode node = builder.start();
        try {
            System.out.println(
                    "[it] " + node.release() + " took " + node.awaitCql().toMillis() + " ms to CQL");
            return node;
        } catch (RuntimeException | Error e) {
            node.close();
            throw e;
        }
    }

    /** Writes and reads back a row. */
    static void assertServes(CassandraNode node) {
        assertServes(node.cql());
    }

    /** Writes and reads back a row over a session, which stays open. */
    public static void assertServes(CqlSession cql) {
        cql.execute("CREATE KEYSPACE IF NOT EXISTS serves"
                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        cql.execute("CREATE TABLE IF NOT EXISTS serves.rows (id int PRIMARY KEY, value text)");
        cql.execute("INSERT INTO serves.rows (id, value) VALUES (1, 'written')");
        assertThat(cql.execute("SELECT value FROM serves.rows WHERE id = 1")
                        .one()
                        .getString("value"))
                .isEqualTo("written");
    }
}
