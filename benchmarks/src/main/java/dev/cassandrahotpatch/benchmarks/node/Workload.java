/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import com.datastax.oss.driver.api.core.CqlSession;
import dev.cassandrahotpatch.it.CassandraNode;
import java.nio.ByteBuffer;
import java.util.Random;
import java.util.concurrent.CompletionStage;

/** What clients ask of a node: the same of every node, from a seed. To be used by one thread. */
interface Workload {
    /** Where the workloads have their tables. */
    String KEYSPACE = "bench";

    /** Makes the tables and what is in them before anything is measured. */
    void load(CqlSession cql);

    /** Sends the next request; completes when it is answered as it should be. */
    CompletionStage<?> next();

    /** A value that does not compress. */
    static ByteBuffer value(Random random, int bytes) {
        byte[] value = new byte[bytes];
        random.nextBytes(value);
        return ByteBuffer.wrap(value);
    }

    /** Makes the keyspace, and has everything that was loaded lie in SSTables. */
    static void prepare(CassandraNode node, Workload workload) {
        node.cql()
                .execute("CREATE KEYSPACE " + KEYSPACE
                        + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        workload.load(node.cql());
        node.invoke("org.apache.cassandra.db:type=StorageService", "forceKeyspaceFlush", KEYSPACE, new String[0]);
    }
}
