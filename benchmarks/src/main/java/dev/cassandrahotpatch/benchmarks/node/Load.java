/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import dev.cassandrahotpatch.it.Requests;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
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

    /** A load of requests, each of which is sent as it is supplied. */
    Load(Supplier<CompletionStage<?>> requests) {
        this.requests = requests;
    }

    /** Has always so many requests under way; gives back how many were answered in a second. */
    double asMuchAsPossible(Duration duration) throws InterruptedException {
        Requests underWay = new Requests(IN_FLIGHT);
        long sent = 0;
        long began = System.nanoTime();
        while (System.nanoTime() - began < duration.toNanos() && !underWay.haveFailed()) {
            underWay.send(requests);
            sent++;
        }
        underWay.awaitAnswers();
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
        Requests underWay = new Requests(IN_FLIGHT_AT_A_RATE);
        long count = (long) (perSecond * duration.toNanos() / 1e9);
        long began = System.nanoTime();
        for (long i = 0; i < count && !underWay.haveFailed(); i++) {
            long due = began + (long) (i * 1e9 / perSecond);
            for (long early = due - System.nanoTime(); early > 0; early = due - System.nanoTime()) {
                LockSupport.parkNanos(early);
            }
            underWay.send(() -> requests.get()
                    .whenComplete(
                            (answer, error) -> latencies.recordValue(Math.max(0, System.nanoTime() - due) / 1_000)));
        }
        underWay.awaitAnswers();
        return latencies;
    }
}
