/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.AsyncResultSet;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchStatementBuilder;
import com.datastax.oss.driver.api.core.cql.BatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * The load of CASSANDRA-21285: nine reads of a partition, page by page, and a write that adds a row to one. The responses'
 * sizes grow meanwhile, and the last page of a partition has any size.
 */
final class GrowingPartitions implements Workload {
    private static final int PARTITIONS = 500;
    private static final int ROWS_AT_FIRST = 50;
    private static final int PAGE_ROWS = 100;
    private static final int VALUE_BYTES = 200;
    private static final long SEED = 21285;

    private final Random random = new Random(SEED);
    private final int[] rows = new int[PARTITIONS];
    private CqlSession cql;
    private PreparedStatement select;
    private PreparedStatement insert;

    @Override
    public void load(CqlSession newCql) {
        cql = newCql;
        cql.execute("CREATE TABLE " + KEYSPACE + ".pages (id int, row int, value blob, PRIMARY KEY (id, row))");
        select = cql.prepare("SELECT row, value FROM " + KEYSPACE + ".pages WHERE id = ?");
        insert = cql.prepare("INSERT INTO " + KEYSPACE + ".pages (id, row, value) VALUES (?, ?, ?)");
        for (int id = 0; id < PARTITIONS; id++) {
            BatchStatementBuilder batch = BatchStatement.builder(BatchType.UNLOGGED);
            rows[id] = ROWS_AT_FIRST + random.nextInt(2 * PAGE_ROWS);
            for (int row = 0; row < rows[id]; row++) {
                batch.addStatement(insert.bind(id, row, Workload.value(random, VALUE_BYTES)));
            }
            cql.execute(batch.build());
        }
    }

    @Override
    public CompletionStage<?> next() {
        int id = random.nextInt(PARTITIONS);
        if (random.nextInt(10) == 0) {
            return cql.executeAsync(insert.bind(id, rows[id]++, Workload.value(random, VALUE_BYTES)));
        }
        return cql.executeAsync(select.bind(id).setPageSize(PAGE_ROWS)).thenCompose(GrowingPartitions::otherPages);
    }

    private static CompletionStage<AsyncResultSet> otherPages(AsyncResultSet page) {
        return page.hasMorePages()
                ? page.fetchNextPage().thenCompose(GrowingPartitions::otherPages)
                : CompletableFuture.completedFuture(page);
    }
}
