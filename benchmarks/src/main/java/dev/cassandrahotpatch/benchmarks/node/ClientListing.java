/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import dev.cassandrahotpatch.it.CassandraNode;
import dev.cassandrahotpatch.it.CassandraRelease;
import dev.cassandrahotpatch.it.Measurement;
import dev.cassandrahotpatch.it.Measurement.Better;
import dev.cassandrahotpatch.it.Measurement.Case;
import dev.cassandrahotpatch.it.Measurement.Variant;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** How long a node takes to list its clients, with thousands of connections that have been used by all its threads. */
final class ClientListing {
    private static final String PATCH = "connection_request_counter";
    private static final int CONNECTIONS = 2_000;
    private static final int LISTINGS = 5;
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private final CassandraRelease release;

    ClientListing(CassandraRelease release) {
        this.release = release;
    }

    /** A node and the session that has all the connections. */
    private record Connected(CassandraNode node, CqlSession clients) implements AutoCloseable {
        @Override
        public void close() {
            clients.close();
            node.close();
        }

        /** Has every connection used, so that each thread of the node has counted on many of them. */
        void use(Duration duration) throws InterruptedException {
            new Load(() -> clients.executeAsync("SELECT key FROM system.local")).asMuchAsPossible(duration);
        }

        /** Milliseconds of one listing. */
        double list() {
            long began = System.nanoTime();
            for (int i = 0; i < LISTINGS; i++) {
                int listed = node.cql()
                        .execute("SELECT address, port, request_count FROM system_views.clients")
                        .all()
                        .size();
                if (listed < CONNECTIONS) {
                    throw new IllegalStateException("only " + listed + " clients of " + node);
                }
            }
            return (System.nanoTime() - began) / 1e6 / LISTINGS;
        }
    }

    List<Measurement> measure(WholeNodes.Length length) throws IOException, InterruptedException {
        try (Turns<Connected> turns = Turns.start(this::start)) {
            turns.take(1, connected -> {
                connected.use(length.turn());
                return null;
            });
            Map<Variant, List<Double>> millis = turns.take(2 * length.turns(), Connected::list);
            return List.of(new Measurement(
                    PATCH,
                    "Whole node: listing the clients",
                    String.format(
                            "`SELECT address, port, request_count FROM system_views.clients`, %,d connections, after requests"
                                    + " on all of them.",
                            CONNECTIONS),
                    release.version(),
                    "ms",
                    Better.LESS,
                    List.of(new Case("a listing", millis))));
        }
    }

    private Connected start(Variant variant) {
        CassandraNode node = PatchedNode.of(release, variant, PATCH).start();
        PatchedNode.awaitStarted(node, variant, PATCH);
        return new Connected(
                node,
                CqlSession.builder()
                        .addContactPoint(node.cqlAddress())
                        .withLocalDatacenter("datacenter1")
                        .withConfigLoader(DriverConfigLoader.programmaticBuilder()
                                .withInt(DefaultDriverOption.CONNECTION_POOL_LOCAL_SIZE, CONNECTIONS)
                                .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, PATIENCE)
                                .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, PATIENCE)
                                .withBoolean(DefaultDriverOption.METADATA_SCHEMA_ENABLED, false)
                                .build())
                        .build());
    }
}
