/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import static org.assertj.core.api.Assertions.assertThat;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryMXBean;
import java.lang.management.MemoryPoolMXBean;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.openmbean.TabularData;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.ValueSource;

/** Patches taken out of and put back into a node that serves meanwhile, over JMX. */
@ParameterizedClass(name = "{0}")
@ValueSource(strings = {"4.1.10", "6.0-alpha2"})
@Timeout(180)
class LiveControlIT {
    private static final String DOMAIN = "org.apache.cassandra.hotpatch";
    private static final int ROWS = 500;
    private static final int ROUNDS = 10;
    private static final long MOST_METASPACE_GROWTH = 1024 * 1024;

    @TempDir
    static Path records;

    private static CassandraNode node;

    private final String version;

    LiveControlIT(String version) {
        this.version = version;
    }

    @BeforeParameterizedClassInvocation
    static void startNode(String version) throws IOException {
        node = StartedNode.of(CassandraNode.of(CassandraRelease.of(version))
                .afterJamm(AgentJar.option(), ClassRecorder.option(records, PatchTarget.classNames())));
        node.awaitTable();
        CqlSession cql = node.cql();
        cql.execute("CREATE KEYSPACE live WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        cql.execute("CREATE TABLE live.rows (id int PRIMARY KEY, value text)");
        cql.execute("CREATE TABLE live.counters (id int PRIMARY KEY, n counter)");
        for (int id = 0; id < ROWS; id++) {
            cql.execute("INSERT INTO live.rows (id, value) VALUES (?, ?)", id, "value " + id);
        }
    }

    @AfterParameterizedClassInvocation
    static void stopNode() {
        if (node != null) {
            node.close();
        }
    }

    @Test
    void thePatchesAreToBeSeenOverJmxAsInTheLog() throws Exception {
        HotpatchTable logged = node.awaitTable();
        for (PatchTarget target : PatchTarget.values()) {
            assertThat(attribute(target, "State")).isEqualTo(logged.state(target.patch()));
            assertThat(attribute(target, "Reason")).isEqualTo(logged.reason(target.patch()));
            assertThat(attribute(target, "Ticket"))
                    .isEqualTo(logged.row(target.patch()).ticket());
            assertThat((String) attribute(target, "Summary")).isNotBlank();
            assertThat(Instant.parse((String) attribute(target, "Since"))).isBefore(Instant.now());
        }
        String[] table = (String[]) node.jmx().getAttribute(new ObjectName(DOMAIN + ":type=HotPatch"), "Table");
        assertThat(table).hasSameSizeAs(logged.rows().keySet());
    }

    @Test
    void takingAPatchOutRestoresTheStockBytesAndPuttingItBackPatchesAgain() throws Exception {
        try (Load load = new Load()) {
            for (PatchTarget target : applied()) {
                byte[] stock = node.release().classFile(target.className());
                for (int round = 0; round < ROUNDS; round++) {
                    assertThat(invoke(target, "disable")).contains("DISABLED").contains("over JMX");
                    assertThat(attribute(target, "State")).isEqualTo("DISABLED");
                    assertThat(ClassRecorder.recorded(records, target.className()))
                            .as("round %d, the class of %s", round, target)
                            .isEqualTo(stock);
                    assertThat(invoke(target, "enable")).contains("APPLIED");
                    assertThat(ClassRecorder.recorded(records, target.className()))
                            .isNotEqualTo(stock);
                }
            }
            load.stop();
        }
    }

    @Test
    void takingPatchesOutAndPuttingThemBackLeavesNothingInTheMetaspace() throws Exception {
        toggleAll(ROUNDS); // what is loaded and compiled at first use
        long before = metaspaceAfterGc();
        toggleAll(3 * ROUNDS);
        long after = metaspaceAfterGc();
        System.out.println("[it] " + version + ": metaspace " + before + " bytes, after " + 3 * ROUNDS
                + " rounds of taking every patch out and putting it back " + after);
        assertThat(after - before).isLessThan(MOST_METASPACE_GROWTH);
    }

    @Test
    void aPatchThatIsNotNeededStaysSoWhateverIsAskedOfIt() throws Exception {
        for (PatchTarget target : PatchTarget.values()) {
            if (attribute(target, "State").equals("NOT_NEEDED")) {
                assertThat(invoke(target, "enable")).contains("NOT_NEEDED");
                assertThat(invoke(target, "disable")).contains("NOT_NEEDED");
            }
        }
        assertThat(applied()).hasSize(2);
    }

    @Test
    void aPatchThatAddsMethodsToClassesNeedsARestart() throws Exception {
        assertThat(invoke("async_sstable_writer", "enable"))
                .contains("RESTART_NEEDED")
                .contains("restart with -Dcassandra.hotpatch.async_sstable_writer=true");
        assertThat(invoke("async_sstable_writer", "disable")).contains("DISABLED");
    }

    @Test
    void theMetersAreToBeSeenOverJmx() throws Exception {
        Set<ObjectName> meters = node.jmx().queryNames(new ObjectName(DOMAIN + ".metrics:*"), null);
        assertThat(meters)
                .extracting(ObjectName::toString)
                .anyMatch(name -> name.contains("cassandraHotpatchWriterChunks"));
        for (ObjectName meter : meters) {
            if (meter.toString().contains("cassandraHotpatchPatchState.patch.cache_capacity.state.APPLIED")) {
                assertThat(node.jmx().getAttribute(meter, "Value")).isEqualTo(1.0);
                return;
            }
        }
        throw new AssertionError("no state of cache_capacity among " + meters);
    }

    @Test
    void countersOfAPatchAreToBeSeenBesideItsState() throws Exception {
        if (!attribute(PatchTarget.RESPONSE_BUFFER_SIZING, "State").equals("NOT_NEEDED")) {
            double before = responses();
            StartedNode.assertServes(node);
            assertThat(responses()).isGreaterThan(before);
        }
    }

    private static double responses() throws Exception {
        TabularData counters = (TabularData) attribute(PatchTarget.RESPONSE_BUFFER_SIZING, "Counters");
        return (Double) counters.get(new Object[] {"responses"}).get("value");
    }

    @Test
    void connectionsOpenedBeforeAndAfterGoOnCounting() throws Exception {
        try (RawConnection before = new RawConnection(node.cqlAddress())) {
            before.query("SELECT release_version FROM system.local", 40);
            for (PatchTarget target : applied()) {
                invoke(target, "disable");
            }
            try (RawConnection between = new RawConnection(node.cqlAddress())) {
                before.query("SELECT release_version FROM system.local", 50);
                between.query("SELECT release_version FROM system.local", 60);
                for (PatchTarget target : PatchTarget.values()) {
                    invoke(target, "enable");
                }
                between.query("SELECT release_version FROM system.local", 70);
                assertThat(requestCount(before)).isEqualTo(before.requests());
                assertThat(requestCount(between)).isEqualTo(between.requests());
            }
        }
    }

    @Test
    void cachesKeepTheirContents() throws Exception {
        for (int id = 0; id < ROWS; id++) {
            node.cql().execute("UPDATE live.counters SET n = n + 1 WHERE id = " + id);
        }
        NodeCache cache = new NodeCache(node, "Counter");
        long entries = cache.entries();
        long capacity = cache.capacity();
        invoke(PatchTarget.CACHE_CAPACITY, "disable");
        assertThat(cache.entries()).isGreaterThanOrEqualTo(ROWS).isEqualTo(entries);
        assertThat(cache.capacity()).isEqualTo(capacity);
        invoke(PatchTarget.CACHE_CAPACITY, "enable");
        assertThat(cache.entries()).isEqualTo(entries);
        assertThat(cache.capacity()).isEqualTo(capacity);
    }

    private static void toggleAll(int rounds) throws Exception {
        for (int round = 0; round < rounds; round++) {
            for (String operation : List.of("disable", "enable")) {
                for (PatchTarget target : PatchTarget.values()) {
                    invoke(target, operation);
                }
            }
        }
    }

    private static long metaspaceAfterGc() throws Exception {
        MBeanServerConnection jmx = node.jmx();
        MemoryMXBean memory =
                ManagementFactory.newPlatformMXBeanProxy(jmx, ManagementFactory.MEMORY_MXBEAN_NAME, MemoryMXBean.class);
        memory.gc(); // old versions of a retransformed class go with the collection after the one that finds them
        // unused
        memory.gc();
        return ManagementFactory.getPlatformMXBeans(jmx, MemoryPoolMXBean.class).stream()
                .filter(pool -> pool.getName().equals("Metaspace"))
                .findFirst()
                .orElseThrow()
                .getUsage()
                .getUsed();
    }

    private static List<PatchTarget> applied() throws Exception {
        HotpatchTable logged = node.awaitTable();
        return Stream.of(PatchTarget.values())
                .filter(target -> !logged.state(target.patch()).equals("NOT_NEEDED"))
                .toList();
    }

    private static ObjectName bean(String patch) throws Exception {
        return new ObjectName(DOMAIN + ":type=Patch,name=" + patch);
    }

    private static Object attribute(PatchTarget target, String name) throws Exception {
        return node.jmx().getAttribute(bean(target.patch()), name);
    }

    private static String invoke(PatchTarget target, String operation) throws Exception {
        return invoke(target.patch(), operation);
    }

    private static String invoke(String patch, String operation) throws Exception {
        return (String) node.jmx().invoke(bean(patch), operation, null, null);
    }

    private static long requestCount(RawConnection connection) {
        return node.cql().execute("SELECT port, request_count FROM system_views.clients").all().stream()
                .filter(row -> row.getInt("port") == connection.port())
                .findFirst()
                .orElseThrow()
                .getLong("request_count");
    }

    /** Reads and writes as fast as one client can, until it is stopped; then sees that every answer was right. */
    private static final class Load implements AutoCloseable {
        private final ExecutorService client = Executors.newSingleThreadExecutor();
        private final AtomicBoolean stopped = new AtomicBoolean();
        private final AtomicLong requests = new AtomicLong();
        private final Future<?> running = client.submit(this::run);

        private void run() {
            PreparedStatement select = node.cql().prepare("SELECT value FROM live.rows WHERE id = ?");
            PreparedStatement add = node.cql().prepare("UPDATE live.counters SET n = n + 1 WHERE id = ?");
            for (int i = 0; !stopped.get(); i++) {
                int id = i % ROWS;
                assertThat(node.cql().execute(select.bind(id)).one().getString(0))
                        .isEqualTo("value " + id);
                node.cql().execute(add.bind(ROWS + id));
                requests.incrementAndGet();
            }
        }

        void stop() throws Exception {
            stopped.set(true);
            running.get(30, TimeUnit.SECONDS);
            assertThat(requests.get()).as("requests served meanwhile").isPositive();
        }

        @Override
        public void close() {
            stopped.set(true);
            client.shutdownNow();
        }
    }
}
