/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The threads that write chunks (CASSANDRA-21655): a bounded number of daemons, which end after some seconds without work.
 * Nothing ever interrupts them, since an interrupted thread that writes closes its channel.
 */
final class ChunkThreads {
    private static final int KEEP_SECONDS = 5;
    private static final AtomicInteger STARTED = new AtomicInteger();
    private static final int PROCESSORS = Runtime.getRuntime().availableProcessors();
    /** What the operator has set, or 0. */
    private static final int THREADS_SET = Integer.getInteger(ChunkQueue.SETTINGS + "threads", 0);

    private static final ThreadPoolExecutor THREADS = pool(THREADS_SET > 0 ? THREADS_SET : Math.max(2, PROCESSORS / 2));
    /** Queues that are served or wait to be. */
    private static final AtomicInteger SERVED = new AtomicInteger();

    private ChunkThreads() {}

    /** Whether one more server would have a core for itself; always, if the operator has set how many there may be. */
    static boolean haveCoreForOneMore() {
        return THREADS_SET > 0 || ChunkProducers.SHARED.active() + SERVED.get() < PROCESSORS;
    }

    /** Has a queue served; says whether it will be. If not, the producer has to do the work itself. Never throws. */
    static boolean serve(ChunkQueue queue) {
        try {
            THREADS.execute(queue);
            SERVED.incrementAndGet();
            return true;
        } catch (RuntimeException
                | Error e) { // no thread to be had, for whatever reason: that is an answer, not a failure
            return false;
        }
    }

    /** Called by a queue that was served and is no more. */
    static void served() {
        SERVED.decrementAndGet();
    }

    private static ThreadPoolExecutor pool(int most) {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(
                most, most, KEEP_SECONDS, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), task -> {
                    Thread thread = new Thread(task, "hotpatch-sstable-writer-" + STARTED.incrementAndGet());
                    thread.setDaemon(true);
                    return thread;
                });
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }
}
