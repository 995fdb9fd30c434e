/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Group;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * What it takes to hand something over to a thread that sleeps for it: the worst that a queue at the eviction lock comes to,
 * for the {@link ContentionModel}. Two threads wake each other in turn, by the parking that Caffeine's lock does, too.
 */
@State(Scope.Group)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public class LockBenchmark {
    private final Semaphore left = new Semaphore(0);
    private final Semaphore right = new Semaphore(0);

    /** Whoever comes first sleeps: what the last iteration left would let both run at once. */
    @Setup(Level.Iteration)
    public void reset() {
        left.drainPermits();
        right.drainPermits();
    }

    @Benchmark
    @Group("handOver")
    public boolean leftHandsOver() throws InterruptedException {
        right.release();
        return sleep(left);
    }

    @Benchmark
    @Group("handOver")
    public boolean rightHandsOver() throws InterruptedException {
        boolean woken = sleep(right);
        left.release();
        return woken;
    }

    /** Gives up after a while, since at the end of an iteration nobody may come any more. */
    private static boolean sleep(Semaphore semaphore) throws InterruptedException {
        return semaphore.tryAcquire(100, TimeUnit.MILLISECONDS);
    }
}
