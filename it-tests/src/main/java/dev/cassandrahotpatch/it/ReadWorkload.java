/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * Reads by key, from a table whose rows all lie in SSTables, many at a time; measures the node that serves them. To be used
 * by one thread.
 */
final class ReadWorkload {
    private static final int ROWS = 20_000;
    private static final int SMALLEST_ROW = 200;
    private static final int LARGEST_ROW = 4_000;
    private static final int IN_FLIGHT = 128;
    private static final Duration WARM_UP = Duration.ofSeconds(6);
    private static final Duration MEASURED = Duration.ofSeconds(8);
    private static final Duration RECORDED = Duration.ofSeconds(3);
    private static final long SEED = 19429;

    private final CassandraNode node;
    private final Consumer<String> progress;
    private final Random random = new Random(SEED);

    /**
     * What was measured.
     *
     * @param bytesPerRead allocated by all threads of the server, divided by the reads
     * @param waitsPerMillion how often a thread of the server parked for the lock in {@code getMaximum}, which is where
     *     {@code getCapacity} ends, in a million reads
     */
    record Result(double readsPerSecond, double bytesPerRead, double waitsPerMillion) {}

    ReadWorkload(CassandraNode node, Consumer<String> progress) {
        this.node = node;
        this.progress = progress;
    }

    Result run() throws IOException, InterruptedException {
        load();
        progress.accept("warming up for " + WARM_UP.toSeconds() + " s");
        read(WARM_UP);
        progress.accept("reading for " + MEASURED.toSeconds() + " s, " + IN_FLIGHT + " at a time");
        long bytesBefore = allocatedBytes();
        long began = System.nanoTime();
        long reads = read(MEASURED);
        double seconds = (System.nanoTime() - began) / 1e9;
        long bytes = allocatedBytes() - bytesBefore;
        progress.accept(
                "reading for another " + RECORDED.toSeconds() + " s while the flight recorder notes every lock wait");
        AtomicLong recordedReads = new AtomicLong();
        long waits = LockWaits.inGetMaximum(node, () -> recordedReads.set(read(RECORDED)));
        return new Result(reads / seconds, (double) bytes / reads, 1e6 * waits / recordedReads.get());
    }

    private void load() {
        progress.accept("loading " + ROWS + " rows of " + SMALLEST_ROW + " to " + LARGEST_ROW + " bytes");
        CqlSession cql = node.cql();
        cql.execute("CREATE KEYSPACE demo WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        cql.execute("CREATE TABLE demo.rows (key int PRIMARY KEY, value blob) WITH caching = {'keys': 'ALL'}");
        PreparedStatement insert = cql.prepare("INSERT INTO demo.rows (key, value) VALUES (?, ?)");
        for (int key = 0; key < ROWS; key++) {
            byte[] value = new byte[SMALLEST_ROW + random.nextInt(LARGEST_ROW - SMALLEST_ROW)];
            random.nextBytes(value);
            cql.execute(insert.bind(key, ByteBuffer.wrap(value)));
        }
        flush();
    }

    private void flush() {
        node.invoke("org.apache.cassandra.db:type=StorageService", "forceKeyspaceFlush", "demo", new String[0]);
    }

    /** Reads random keys; gives back how many reads were answered. */
    private long read(Duration duration) throws InterruptedException {
        CqlSession cql = node.cql();
        PreparedStatement select = cql.prepare("SELECT value FROM demo.rows WHERE key = ?");
        Requests reads = new Requests(IN_FLIGHT);
        AtomicLong answered = new AtomicLong();
        long end = System.nanoTime() + duration.toNanos();
        while (System.nanoTime() < end && !reads.haveFailed()) {
            reads.send(() -> cql.executeAsync(select.bind(random.nextInt(ROWS))).thenAccept(rows -> {
                if (rows.one() == null) {
                    throw new IllegalStateException("a row is missing");
                }
                answered.incrementAndGet();
            }));
        }
        reads.awaitAnswers();
        return answered.get();
    }

    private long allocatedBytes() throws IOException {
        ThreadMXBean threads = ManagementFactory.newPlatformMXBeanProxy(
                node.jmx(), ManagementFactory.THREAD_MXBEAN_NAME, ThreadMXBean.class);
        long sum = 0;
        for (long bytes : threads.getThreadAllocatedBytes(threads.getAllThreadIds())) {
            sum += Math.max(0, bytes); // -1 for a thread that has just ended
        }
        return sum;
    }
}
