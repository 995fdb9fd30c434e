/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.util.concurrent.CompletionStage;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

/** Requests to a node, no more than a bound under way at a time. To be used by one thread. */
public final class Requests {
    private final int most;
    private final Semaphore room;
    /** The first; written by the driver's threads. */
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    /** Of which so many may be under way. */
    public Requests(int most) {
        this.most = most;
        room = new Semaphore(most);
    }

    /** Sends one, once there is room for it. */
    public void send(Supplier<? extends CompletionStage<?>> request) throws InterruptedException {
        room.acquire();
        request.get().whenComplete((answer, error) -> {
            if (error != null) {
                failure.compareAndSet(null, error);
            }
            room.release();
        });
    }

    /** Whether one has failed, so that it makes no sense to go on. */
    public boolean haveFailed() {
        return failure.get() != null;
    }

    /**
     * Waits until all are answered.
     *
     * @throws IllegalStateException if one has failed; its cause is the first failure
     */
    public void awaitAnswers() throws InterruptedException {
        room.acquire(most);
        room.release(most);
        if (haveFailed()) {
            throw new IllegalStateException("a request failed", failure.get());
        }
    }
}
