/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import java.util.Random;
import java.util.concurrent.CompletionStage;

/** The load of CASSANDRA-19429: nine reads by key out of SSTables, with the key cache on, and a write of a new key. */
final class KeyReads implements Workload {
    private static final int ROWS = 20_000;
    private static final int VALUE_BYTES = 300;
    private static final long SEED = 19429;

    private final Random random = new Random(SEED);
    private CqlSession cql;
    private PreparedStatement select;
    private PreparedStatement insert;
    private int newest = ROWS;

    @Override
    public void load(CqlSession newCql) {
        cql = newCql;
        cql.execute(
                "CREATE TABLE " + KEYSPACE + ".rows (key int PRIMARY KEY, value blob) WITH caching = {'keys': 'ALL'}");
        select = cql.prepare("SELECT value FROM " + KEYSPACE + ".rows WHERE key = ?");
        insert = cql.prepare("INSERT INTO " + KEYSPACE + ".rows (key, value) VALUES (?, ?)");
        for (int key = 0; key < ROWS; key++) {
            cql.execute(insert.bind(key, Workload.value(random, VALUE_BYTES)));
        }
    }

    @Override
    public CompletionStage<?> next() {
        if (random.nextInt(10) == 0) {
            return cql.executeAsync(insert.bind(newest++, Workload.value(random, VALUE_BYTES)));
        }
        int key = random.nextInt(ROWS);
        return cql.executeAsync(select.bind(key)).thenAccept(rows -> {
            if (rows.one() == null) {
                throw new IllegalStateException("row " + key + " is missing");
            }
        });
    }
}
