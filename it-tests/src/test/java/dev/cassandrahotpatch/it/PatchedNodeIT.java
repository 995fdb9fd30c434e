/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import static org.assertj.core.api.Assertions.assertThat;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.AsyncResultSet;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.cql.Statement;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.stream.Collectors;
import java.util.zip.CRC32C;
import javax.management.ObjectName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.CsvSource;

/** What a node of each line does with the patches in it: the same as without. */
@ParameterizedClass(name = "{0}, agent {1} jamm")
@CsvSource({"4.1.3, behind", "4.1.10, before", "6.0-alpha2, behind"})
@Timeout(180)
class PatchedNodeIT {
    private static final int KEYS = 2_000;
    private static final int WIDE_ROWS = 2_000;
    private static final int LARGEST_BLOB = 64 * 1024;
    private static final int CONNECTIONS = 16;

    @TempDir
    static Path records;

    private static CassandraNode node;

    private final String version;

    PatchedNodeIT(String version, String place) {
        this.version = version;
    }

    @BeforeParameterizedClassInvocation
    static void startNode(String version, String place) throws Exception {
        CassandraNode.Builder builder = CassandraNode.of(CassandraRelease.of(version));
        String[] agents = {AgentJar.option(), ClassRecorder.option(records, PatchTarget.classNames())};
        node = StartedNode.of(place.equals("before") ? builder.beforeJamm(agents) : builder.afterJamm(agents));
        node.cql()
                .execute("CREATE KEYSPACE patched"
                        + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    }

    @AfterParameterizedClassInvocation
    static void stopNode() {
        if (node != null) {
            node.close();
        }
    }

    @Test
    void theNodeServes() {
        StartedNode.assertServes(node);
        assertThat(node.cql()
                        .execute("SELECT release_version FROM system.local")
                        .one()
                        .getString(0))
                .isEqualTo(version);
    }

    @Test
    void theTableSaysWhatRunsAndWhy() {
        HotpatchTable table = node.awaitTable();
        assertThat(table.rows())
                .containsOnlyKeys(
                        "cache_capacity",
                        "connection_request_counter",
                        "response_buffer_sizing",
                        "async_sstable_writer");
        assertThat(table.row("cache_capacity").ticket()).isEqualTo("CASSANDRA-19429");
        assertThat(table.row("connection_request_counter").ticket()).isEqualTo("CASSANDRA-21569");
        assertThat(table.row("response_buffer_sizing").ticket()).isEqualTo("CASSANDRA-21285");
        assertThat(table.rows().values())
                .allSatisfy(row -> assertThat(row.reason()).isNotBlank());
        assertThat(table.state("cache_capacity")).isEqualTo("APPLIED");
        assertThat(table.state("connection_request_counter")).isEqualTo(is60() ? "APPLIED" : "NOT_NEEDED");
        assertThat(table.state("response_buffer_sizing")).isEqualTo(is60() ? "NOT_NEEDED" : "APPLIED");
        assertThat(table.state("async_sstable_writer")).as("opt in").isEqualTo("DISABLED");
        assertThat(table.reason("async_sstable_writer")).contains("-Dcassandra.hotpatch.async_sstable_writer=true");
        if (is60()) {
            assertThat(table.reason("response_buffer_sizing"))
                    .contains("cassandra.data_response_buffer_initial_size_min")
                    .contains("cassandra.data_response_buffer_initial_size_max");
        }
    }

    @Test
    void theJvmWasGivenWhatTheTableClaims() throws Exception {
        HotpatchTable table = node.awaitTable();
        StartedNode.assertServes(node);
        for (PatchTarget target : PatchTarget.values()) {
            byte[] stock = node.release().classFile(target.className());
            byte[] given = ClassRecorder.recorded(records, target.className());
            if (table.state(target.patch()).equals("APPLIED")) {
                assertThat(target.calls(given))
                        .as("what %s calls", target)
                        .isNotEqualTo(target.calls(stock))
                        .doesNotContain(
                                "java.util.concurrent.locks.ReentrantLock.lock",
                                "org.apache.cassandra.metrics.ThreadLocalCounter.<init>");
            } else {
                assertThat(given).as("the class of %s", target).isEqualTo(stock);
            }
        }
    }

    @Test
    void theKeyCacheFillsHitsAndHonoursItsCapacity() throws Exception {
        CqlSession cql = node.cql();
        cql.execute("CREATE TABLE patched.keys (id int PRIMARY KEY, value text) WITH caching = {'keys': 'ALL'}"
                + " AND compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}");
        PreparedStatement insert = cql.prepare("INSERT INTO patched.keys (id, value) VALUES (?, ?)");
        PreparedStatement select = cql.prepare("SELECT value FROM patched.keys WHERE id = ?");
        executeForEach(KEYS, id -> insert.bind(id, "value " + id));
        flush("patched");
        NodeCache cache = new NodeCache(node, "Key");

        cache.invalidate();
        cache.awaitEmpty();
        executeForEach(KEYS, select::bind);
        assertThat(cache.entries()).as("entries after filling an empty cache").isGreaterThanOrEqualTo(KEYS);
        long hits = cache.hits();
        executeForEach(KEYS, select::bind);
        assertThat(cache.hits() - hits).as("hits once it is full").isGreaterThanOrEqualTo(KEYS);

        cache.setCapacityInMebibytes(0);
        assertThat(cache.capacity()).isZero();
        cache.awaitEmpty();
        hits = cache.hits();
        executeForEach(KEYS, select::bind);
        // 6.0 puts a key in first and evicts it then, so that the last few may still be there
        assertThat(cache.entries()).as("entries with capacity 0").isLessThanOrEqualTo(is60() ? KEYS / 100 : 0);
        assertThat(cache.hits()).as("hits with capacity 0").isEqualTo(hits);

        cache.setCapacityInMebibytes(16);
        assertThat(cache.capacity()).isEqualTo(16 * 1024 * 1024);
        executeForEach(KEYS, select::bind);
        assertThat(cache.entries()).as("entries with the capacity set back").isGreaterThanOrEqualTo(KEYS);
    }

    @Test
    void theCounterCacheFillsHitsAndHonoursItsCapacity() throws Exception {
        int counters = 200;
        CqlSession cql = node.cql();
        cql.execute("CREATE TABLE patched.counters (id int PRIMARY KEY, n counter)");
        PreparedStatement add = cql.prepare("UPDATE patched.counters SET n = n + ? WHERE id = ?");
        NodeCache cache = new NodeCache(node, "Counter");

        cache.invalidate();
        cache.awaitEmpty();
        executeForEach(counters, id -> add.bind(1L, id));
        assertThat(cache.entries()).as("entries after filling an empty cache").isEqualTo(counters);
        long hits = cache.hits();
        executeForEach(counters, id -> add.bind(10L, id));
        assertThat(cache.hits() - hits).as("hits once it is full").isEqualTo(counters);

        cache.setCapacityInMebibytes(0);
        assertThat(cache.capacity()).isZero();
        cache.awaitEmpty();
        hits = cache.hits();
        executeForEach(counters, id -> add.bind(100L, id));
        assertThat(cache.entries()).as("entries with capacity 0").isZero();
        assertThat(cache.hits()).as("hits with capacity 0").isEqualTo(hits);

        cache.setCapacityInMebibytes(8);
        assertThat(cache.capacity()).isEqualTo(8 * 1024 * 1024);
        executeForEach(counters, id -> add.bind(1_000L, id));
        assertThat(cache.entries()).as("entries with the capacity set back").isEqualTo(counters);

        assertThat(cql.execute("SELECT n FROM patched.counters").all())
                .hasSize(counters)
                .allSatisfy(row -> assertThat(row.getLong("n")).isEqualTo(1_111));
    }

    @Test
    void everyConnectionsRequestsAreCounted() throws Exception {
        List<RawConnection> connections = new ArrayList<>();
        ExecutorService clients = Executors.newFixedThreadPool(CONNECTIONS);
        try {
            for (int i = 0; i < CONNECTIONS; i++) {
                connections.add(new RawConnection(node.cqlAddress()));
            }
            for (int round = 0; round < 2; round++) {
                List<Future<?>> running = new ArrayList<>();
                for (int i = 0; i < CONNECTIONS; i++) {
                    RawConnection connection = connections.get(i);
                    int requests = 100 + 10 * i;
                    running.add(clients.submit(() -> {
                        connection.query("SELECT release_version FROM system.local", requests);
                        return null;
                    }));
                }
                for (Future<?> client : running) {
                    client.get(60, TimeUnit.SECONDS);
                }
                Map<Integer, Long> made =
                        connections.stream().collect(Collectors.toMap(RawConnection::port, RawConnection::requests));
                assertThat(requestCounts()).containsAllEntriesOf(made);
            }
        } finally {
            clients.shutdownNow();
            for (RawConnection connection : connections) {
                connection.close();
            }
        }
    }

    @Test
    void pagedReadsOfWideRowsReturnWhatWasWritten() throws Exception {
        CqlSession cql = node.cql();
        cql.execute("CREATE TABLE patched.wide (partition int, id int, value blob, PRIMARY KEY (partition, id))");
        PreparedStatement insert = cql.prepare("INSERT INTO patched.wide (partition, id, value) VALUES (0, ?, ?)");
        long[] checksums = new long[WIDE_ROWS];
        Random random = new Random(21285);
        executeForEach(WIDE_ROWS, id -> {
            // every tenth is tiny: a table's responses are hardly ever of one size
            byte[] value = new byte[id % 10 == 0 ? 1 + id % 64 : 1 + random.nextInt(LARGEST_BLOB)];
            random.nextBytes(value);
            checksums[id] = checksum(ByteBuffer.wrap(value));
            return insert.bind(id, ByteBuffer.wrap(value));
        });
        assertPagesHold(checksums);
        flush("patched");
        assertPagesHold(checksums);

        PreparedStatement select = cql.prepare("SELECT id, value FROM patched.wide WHERE partition = 0 AND id = ?");
        for (int id = 0; id < WIDE_ROWS; id += 37) {
            Row row = cql.execute(select.bind(id)).one();
            assertThat(checksum(row.getByteBuffer("value"))).as("row %d", id).isEqualTo(checksums[id]);
        }
    }

    private static void assertPagesHold(long[] checksums) {
        int next = 0;
        for (Row row : node.cql()
                .execute(SimpleStatement.newInstance("SELECT id, value FROM patched.wide WHERE partition = 0")
                        .setPageSize(37))) {
            assertThat(row.getInt("id")).isEqualTo(next);
            assertThat(checksum(row.getByteBuffer("value"))).as("row %d", next).isEqualTo(checksums[next]);
            next++;
        }
        assertThat(next).as("rows").isEqualTo(checksums.length);
    }

    private boolean is60() {
        return version.startsWith("6.0");
    }

    private static Map<Integer, Long> requestCounts() {
        return node.cql().execute("SELECT address, port, request_count FROM system_views.clients").all().stream()
                .collect(Collectors.toMap(row -> row.getInt("port"), row -> row.getLong("request_count")));
    }

    private static void flush(String keyspace) throws Exception {
        node.jmx()
                .invoke(
                        new ObjectName("org.apache.cassandra.db:type=StorageService"),
                        "forceKeyspaceFlush",
                        new Object[] {keyspace, new String[0]},
                        new String[] {String.class.getName(), String[].class.getName()});
    }

    /** Executes one statement for each number, some at a time, and waits for all of them. */
    private static void executeForEach(int count, IntFunction<Statement<?>> statement) throws Exception {
        int atATime = 50;
        for (int first = 0; first < count; first += atATime) {
            List<Future<AsyncResultSet>> running = new ArrayList<>();
            for (int i = first; i < Math.min(count, first + atATime); i++) {
                running.add(node.cql().executeAsync(statement.apply(i)).toCompletableFuture());
            }
            for (Future<AsyncResultSet> result : running) {
                result.get(60, TimeUnit.SECONDS);
            }
        }
    }

    private static long checksum(ByteBuffer bytes) {
        CRC32C checksum = new CRC32C();
        checksum.update(bytes.duplicate());
        return checksum.getValue();
    }
}
