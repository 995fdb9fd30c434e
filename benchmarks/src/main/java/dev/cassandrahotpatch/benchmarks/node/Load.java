/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/** Sends requests, as many as it can or as many a second as it is told. To be used by one thread. */
final class Load {
    private static final int IN_FLIGHT = 128;
    /** Waiting for a stalled server is waiting in which requests are late, not a reason to send fewer. */
    private static final int IN_FLIGHT_AT_A_RATE = 1_024;

    private final Supplier<CompletionStage<?>> requests;
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    /** A load of requests, each of which is sent as it is supplied. */
    Load(Supplier<CompletionStage<?>> requests) {
        this.requests = requests;
    }

    /** Has always so many requests under way; gives back how many were answered in a second. */
    double asMuchAsPossible(Duration duration) throws InterruptedException {
        Semaphore free = new Semaphore(IN_FLIGHT);
        long sent = 0;
        long began = System.nanoTime();
        while (System.nanoTime() - began < duration.toNanos() && failure.get() == null) {
            free.acquire();
            requests.get().whenComplete((answer, error) -> {
                failure.compareAndSet(null, error);
                free.release();
            });
            sent++;
        }
        free.acquire(IN_FLIGHT);
        failOnError();
        return sent * 1e9 / (System.nanoTime() - began);
    }

    /**
     * Sends so many requests a second. A request's latency counts from when it was to be sent, so that what has to wait for a slow
     * one is late as well: no omission is coordinated with the server.
     *
     * @return latencies in microseconds
     */
    Histogram atRate(double perSecond, Duration duration) throws InterruptedException {
        Histogram latencies = new ConcurrentHistogram(TimeUnit.MINUTES.toMicros(5), 3);
        Semaphore free = new Semaphore(IN_FLIGHT_AT_A_RATE);
        long count = (long) (perSecond * duration.toNanos() / 1e9);
        long began = System.nanoTime();
        for (long i = 0; i < count && failure.get() == null; i++) {
            long due = began + (long) (i * 1e9 / perSecond);
            for (long early = due - System.nanoTime(); early > 0; early = due - System.nanoTime()) {
                LockSupport.parkNanos(early);
            }
            free.acquire();
            requests.get().whenComplete((answer, error) -> {
                latencies.recordValue(Math.max(0, System.nanoTime() - due) / 1_000);
                failure.compareAndSet(null, error);
                free.release();
            });
        }
        free.acquire(IN_FLIGHT_AT_A_RATE);
        failOnError();
        return latencies;
    }

    private void failOnError() {
        if (failure.get() != null) {
            throw new IllegalStateException("a request failed", failure.get());
        }
    }
}
