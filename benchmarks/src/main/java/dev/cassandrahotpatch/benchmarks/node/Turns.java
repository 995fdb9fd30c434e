/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import dev.cassandrahotpatch.it.Measurement.Variant;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Two nodes, stock and patched, that are alive at the same time and take turns: whatever the machine does meanwhile, it does to
 * both. To be used by one thread.
 */
record Turns<N extends AutoCloseable>(N stock, N ours) implements AutoCloseable {
    /** What a node does in its turn. */
    interface Turn<N, R> {
        R of(N node) throws IOException, InterruptedException;
    }

    /** Starts a node. */
    interface Start<N> {
        N of(Variant variant) throws IOException, InterruptedException;
    }

    /** Starts both, the stock one first. */
    static <N extends AutoCloseable> Turns<N> start(Start<N> start) throws IOException, InterruptedException {
        N stock = start.of(Variant.STOCK);
        try {
            return new Turns<>(stock, start.of(Variant.OURS));
        } catch (IOException | InterruptedException | RuntimeException e) {
            close(stock);
            throw e;
        }
    }

    /** Has both take so many turns, and one before them, which warms them up and is not kept. */
    <R> Map<Variant, List<R>> take(int turns, Turn<N, R> turn) throws IOException, InterruptedException {
        return take(1, turns, turn);
    }

    /** Has both take so many turns, and some before them, which are not kept. */
    <R> Map<Variant, List<R>> take(int warmUps, int turns, Turn<N, R> turn) throws IOException, InterruptedException {
        for (int i = 0; i < warmUps; i++) {
            turn.of(stock);
            turn.of(ours);
        }
        Map<Variant, List<R>> results = new EnumMap<>(Variant.class);
        results.put(Variant.STOCK, new ArrayList<>());
        results.put(Variant.OURS, new ArrayList<>());
        for (int i = 0; i < turns; i++) {
            results.get(Variant.STOCK).add(turn.of(stock));
            results.get(Variant.OURS).add(turn.of(ours));
        }
        return results;
    }

    @Override
    public void close() {
        try {
            close(stock);
        } finally {
            close(ours);
        }
    }

    private static void close(AutoCloseable node) {
        try {
            node.close();
        } catch (Exception e) {
            throw new IllegalStateException("can't stop " + node, e);
        }
    }
}
