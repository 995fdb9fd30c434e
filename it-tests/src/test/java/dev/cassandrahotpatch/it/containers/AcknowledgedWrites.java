/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import static org.assertj.core.api.Assertions.assertThat;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.metadata.Node;
import java.util.BitSet;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A client that goes on writing rows at QUORUM, each once, and remembers which were acknowledged. A row is known by its
 * number, and what it holds is a function of that. {@code -Dmixed.seed} repeats the rows. Thread-safe.
 */
final class AcknowledgedWrites implements AutoCloseable {
    static final String KEYSPACE = "mixed";
    static final String TABLE = "written";
    static final int CHUNK_KIBIBYTES = 16;

    private static final String NAME = KEYSPACE + "." + TABLE;
    private static final int ROWS_IN_PARTITION = 20;
    private static final int WORDS = 40;
    private static final int UNACKNOWLEDGED = 32;
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(4);
    private static final long PROGRESS_LIMIT_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final CqlSession cql;
    private final PreparedStatement insert;
    private final long seed = Long.getLong("mixed.seed", new Random().nextInt());
    private final Thread thread = new Thread(this::write, "acknowledged-writes");
    private final Semaphore unacknowledged = new Semaphore(UNACKNOWLEDGED);

    /** Guarded by itself; set by the driver's threads. */
    private final BitSet acknowledged = new BitSet();

    /** Failed writes by exception. Guarded by itself; counted by the driver's threads. */
    private final Map<String, Integer> failed = new TreeMap<>();

    /** Written by {@link #close()} only. */
    private volatile boolean ended;

    /** Makes the table, with a replica on each of three nodes, and begins to write. */
    AcknowledgedWrites(CqlSession cql) {
        this.cql = cql;
        Node first = cql.getMetadata().getNodes().values().iterator().next();
        cql.execute(SimpleStatement.newInstance("CREATE KEYSPACE " + KEYSPACE
                        + " WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 3}")
                .setNode(first));
        cql.execute(
                SimpleStatement.newInstance("CREATE TABLE " + NAME + " (id int, c int, value text, PRIMARY KEY (id, c))"
                                + " WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': "
                                + CHUNK_KIBIBYTES + "}")
                        .setNode(first));
        while (!cql.checkSchemaAgreement()) {
            LockSupport.parkNanos(PAUSE_NANOS);
        }
        insert = cql.prepare("INSERT INTO " + NAME + " (id, c, value) VALUES (?, ?, ?)");
        System.out.println("[mixed] rows of -Dmixed.seed=" + seed);
        thread.start();
    }

    private void write() {
        for (int number = 0; !ended; number++) {
            unacknowledged.acquireUninterruptibly();
            int row = number;
            cql.executeAsync(insert.bind(row / ROWS_IN_PARTITION, row % ROWS_IN_PARTITION, value(row))
                            .setConsistencyLevel(ConsistencyLevel.QUORUM)
                            .setIdempotent(true)) // so that the driver, as an application's, tries the next node
                    .whenComplete((result, failure) -> {
                        if (failure == null) {
                            synchronized (acknowledged) {
                                acknowledged.set(row);
                            }
                        } else {
                            synchronized (failed) {
                                failed.merge(failure.toString(), 1, Integer::sum);
                            }
                        }
                        unacknowledged.release();
                    });
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    private String value(int row) {
        Random random = new Random(seed + row);
        StringBuilder value = new StringBuilder();
        for (int i = 0; i < WORDS; i++) {
            value.append(Long.toHexString(random.nextLong())).append(" of ").append(row);
        }
        return value.toString();
    }

    /** The rows acknowledged so far. */
    BitSet soFar() {
        synchronized (acknowledged) {
            return (BitSet) acknowledged.clone();
        }
    }

    /** Waits until some more rows have been acknowledged. */
    void awaitMore(int rows) throws InterruptedException {
        int wanted = soFar().cardinality() + rows;
        long limit = System.nanoTime() + PROGRESS_LIMIT_NANOS;
        while (soFar().cardinality() < wanted) {
            if (System.nanoTime() > limit) {
                throw new AssertionError("no " + rows + " writes within 60 s; failed are " + failed());
            }
            TimeUnit.MILLISECONDS.sleep(50);
        }
    }

    /** How many writes have failed, by exception. A failed write may have been done, or not. */
    Map<String, Integer> failed() {
        synchronized (failed) {
            return new TreeMap<>(failed);
        }
    }

    /**
     * Reads the whole table, and compares what each row holds with what was written.
     *
     * @param coordinator the node that is asked, or null for any
     * @return the rows that there are
     */
    BitSet read(ConsistencyLevel level, Node coordinator) {
        BitSet read = new BitSet();
        for (Row row : cql.execute(SimpleStatement.newInstance("SELECT id, c, value FROM " + NAME)
                .setConsistencyLevel(level)
                .setNode(coordinator)
                .setIdempotent(true)
                .setPageSize(500))) {
            int number = row.getInt(0) * ROWS_IN_PARTITION + row.getInt(1);
            if (!value(number).equals(row.getString(2))) {
                assertThat(row.getString(2)).as("row %d", number).isEqualTo(value(number));
            }
            read.set(number);
        }
        return read;
    }

    /** Ends writing, once the last write is acknowledged or has failed. */
    @Override
    public void close() {
        ended = true;
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        unacknowledged.acquireUninterruptibly(UNACKNOWLEDGED);
        unacknowledged.release(UNACKNOWLEDGED);
    }
}
