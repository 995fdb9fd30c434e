/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.util.function.BiConsumer;

/**
 * Where woven code says that it has met an error and does as stock code does from then on, so that nobody has to ask. Any
 * thread may report.
 */
public final class PatchFailures {
    /** Set by the agent before any class is woven, read by the threads that report; volatile, so that they see it. */
    private static volatile BiConsumer<String, Throwable> listener = (patchId, error) -> {};

    private PatchFailures() {}

    /** Says who is to be told; called with the patch's id and the error, by the thread that met it. */
    public static void tell(BiConsumer<String, Throwable> newListener) {
        listener = newListener;
    }

    /** Reports an error of a patch; to be called once in a patch's life, for the error that ended it. */
    static void report(String patchId, Throwable error) {
        listener.accept(patchId, error);
    }
}
