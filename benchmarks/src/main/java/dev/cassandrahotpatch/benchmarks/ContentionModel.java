/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Predicts what stock 4.1 comes to on more cores than there are here: a closed queueing network, by mean value analysis. Each
 * core works on an operation for a while on its own, then needs the eviction lock once, and begins the next one.
 *
 * <p>How long a core works on its own is taken from the ticket's measurement without the lock, on its machine; how long the
 * lock is taken for each operation, from ours.
 */
final class ContentionModel {
    /** The measurement that has the lock's costs while threads run: operations a microsecond by threads. */
    static final String CAPACITY = "Asking a key cache for its capacity";
    /** The measurement that has the lock's cost when threads sleep for it. */
    static final String HAND_OVER = "Handing over to a thread that sleeps";

    static final List<Integer> CORES = List.of(8, 16, 32, 48, 64, 96, 128, 192);

    /**
     * A machine of the ticket's, with the operations a second that it measured there on 4.1.3.
     *
     * @param cores as the system sees them
     * @param patched with the ticket's diff, which takes no lock
     */
    record Machine(String name, int cores, double stock, double patched) {
        /** Seconds of a core's time that an operation takes without the lock. */
        double work() {
            return cores / patched;
        }
    }

    static final List<Machine> TICKET = List.of(
            new Machine("r8g.24xlarge", 96, 168_000, 496_000), new Machine("r7i.24xlarge", 96, 153_000, 304_000));

    private static final String FREE = "nobody is next";

    /** Seconds that the lock is taken for each operation, by what happens to the thread that is next. */
    private final Map<String, Double> lockSeconds = new LinkedHashMap<>();

    /**
     * Makes a model of what was measured, in operations a microsecond.
     *
     * @param oneThread of capacity reads by one thread
     * @param twoThreads of capacity reads by two threads
     * @param handOver of hand-overs to a thread that sleeps
     */
    ContentionModel(double oneThread, double twoThreads, double handOver) {
        lockSeconds.put(FREE, 1e-6 / oneThread);
        lockSeconds.put("the next thread runs", 1e-6 / twoThreads);
        lockSeconds.put("the next thread sleeps", 1e-6 / handOver);
    }

    Map<String, Double> lockSeconds() {
        return lockSeconds;
    }

    /** Without the case in which there is nobody to hand the lock to. */
    Map<String, Double> contendedSeconds() {
        Map<String, Double> contended = new LinkedHashMap<>(lockSeconds);
        contended.remove(FREE);
        return contended;
    }

    /** Operations a second of a machine like this one, for each number of {@link #CORES}. */
    static List<Double> predict(Machine machine, double lockSeconds) {
        List<Double> predicted = new ArrayList<>();
        CORES.forEach(cores -> predicted.add(throughput(cores, machine.work(), lockSeconds)));
        return predicted;
    }

    /** The exact mean value analysis of one queue, with exponential times. */
    static double throughput(int cores, double workSeconds, double lockSeconds) {
        double throughput = 0;
        double atTheLock = 0;
        for (int n = 1; n <= cores; n++) {
            double waitAndHold = lockSeconds * (1 + atTheLock);
            throughput = n / (workSeconds + waitAndHold);
            atTheLock = throughput * waitAndHold;
        }
        return throughput;
    }
}
