/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.cassandra.concurrent.NamedThreadFactory;

/**
 * Gives JMH the kind of threads that Cassandra serves requests with: some of its code, the counters of 6.0 among it, is faster
 * on them than on others.
 */
public final class CassandraThreads extends ThreadPoolExecutor {
    /** Called by JMH, with the number of threads and the beginning of their names. */
    public CassandraThreads(int threads, String prefix) {
        super(threads, threads, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), new NamedThreadFactory(prefix));
    }
}
