/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import java.nio.ByteBuffer;
import java.util.Random;
import java.util.function.Consumer;

/** Compacts the SSTables of a table into one, and says how long that took. To be used by one thread. */
final class CompactionWorkload {
    private static final String STORAGE = "org.apache.cassandra.db:type=StorageService";
    private static final int SSTABLES = 8;
    private static final int ROWS_EACH = 15_000;
    private static final int PARTITION = 20;
    private static final int VALUE_BYTES = 1_000;
    private static final int IN_FLIGHT = 256;
    private static final long SEED = 21655;

    private final CassandraNode node;
    private final Consumer<String> progress;

    CompactionWorkload(CassandraNode node, Consumer<String> progress) {
        this.node = node;
        this.progress = progress;
    }

    /** How long the compaction took, in milliseconds. */
    double run() throws InterruptedException {
        int mebibytes = (SSTABLES * ROWS_EACH * VALUE_BYTES) >> 20;
        progress.accept("writing " + SSTABLES + " SSTables, " + mebibytes + " MiB in all");
        CqlSession cql = node.cql();
        cql.execute("CREATE TABLE demo.wide (id int, row int, value blob, PRIMARY KEY (id, row)) WITH compaction ="
                + " {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}");
        PreparedStatement insert = cql.prepare("INSERT INTO demo.wide (id, row, value) VALUES (?, ?, ?)");
        for (int sstable = 0; sstable < SSTABLES; sstable++) {
            write(cql, insert, sstable);
            node.invoke(STORAGE, "forceKeyspaceFlush", "demo", new String[] {"wide"});
        }
        progress.accept("compacting them into one");
        long began = System.nanoTime();
        node.invoke(STORAGE, "forceKeyspaceCompaction", false, "demo", new String[] {"wide"});
        return (System.nanoTime() - began) / 1e6;
    }

    /** Each SSTable has some rows of every partition, so that compaction has to merge. */
    private static void write(CqlSession cql, PreparedStatement insert, int sstable) throws InterruptedException {
        Random random = new Random(SEED + sstable);
        Requests writes = new Requests(IN_FLIGHT);
        for (int i = 0; i < ROWS_EACH; i++) {
            byte[] value = new byte[VALUE_BYTES];
            for (int j = 0; j < VALUE_BYTES; j++) {
                value[j] = (byte) ('a' + random.nextInt(j % 4 == 0 ? 26 : 2)); // compresses to about a third
            }
            BoundStatement row =
                    insert.bind(i / PARTITION, sstable * PARTITION + i % PARTITION, ByteBuffer.wrap(value));
            writes.send(() -> cql.executeAsync(row));
        }
        writes.awaitAnswers();
    }
}
