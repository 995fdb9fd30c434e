/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import dev.cassandrahotpatch.it.CassandraRelease;
import dev.cassandrahotpatch.it.Measurement;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * What is measured of whole nodes, stock and with one patch, which take turns. The load runs on the same cores as the nodes.
 */
public final class WholeNodes {
    private static final String V41 = "4.1.10";
    private static final String V60 = "6.0-alpha2";

    /**
     * How long to measure.
     *
     * @param turns how often stock and patched take turns
     * @param turn of serving requests
     * @param pairs of nodes, one after the other, that compact
     * @param whole whether all there is to compact is compacted, with all compressors, or an eighth with one
     */
    public record Length(int turns, Duration turn, int pairs, boolean whole) {
        /** For somebody who waits for it. */
        public static final Length QUICK = new Length(3, Duration.ofSeconds(3), 1, false);
        /** For figures to keep. */
        public static final Length LONG = new Length(5, Duration.ofSeconds(10), 3, true);
    }

    private WholeNodes() {}

    /**
     * Measures.
     *
     * @param patch its id: nothing of others is measured; of all if it is empty
     * @param folder where SSTables and traces may be kept
     */
    public static List<Measurement> measure(Length length, String patch, Path folder)
            throws IOException, InterruptedException {
        String loadOnSameCores = " The load runs on the same cores.";
        List<Measurement> measurements = new ArrayList<>();
        if (patch.isEmpty() || patch.equals("cache_capacity")) {
            measurements.addAll(new Serving(
                            CassandraRelease.of(V41),
                            "cache_capacity",
                            "Whole node: reads by key",
                            "Nine reads by key of 20,000 rows in SSTables and one write, 128 at a time; key cache on."
                                    + loadOnSameCores,
                            KeyReads::new)
                    .countLockWaits()
                    .measure(length));
        }
        if (patch.isEmpty() || patch.equals("response_buffer_sizing")) {
            measurements.addAll(new Serving(
                            CassandraRelease.of(V41),
                            "response_buffer_sizing",
                            "Whole node: pages of partitions that grow",
                            "Nine reads of a partition, in pages of 100 rows, and one write that adds a row, 128 at a time."
                                    + loadOnSameCores,
                            GrowingPartitions::new)
                    .measure(length));
        }
        if (patch.isEmpty() || patch.equals("connection_request_counter")) {
            measurements.addAll(new ClientListing(CassandraRelease.of(V60)).measure(length));
        }
        if (patch.isEmpty() || patch.equals("async_sstable_writer")) {
            for (String version : List.of(V41, V60)) {
                measurements.addAll(new Compactions(CassandraRelease.of(version), folder).measure(length));
            }
        }
        return measurements;
    }
}
