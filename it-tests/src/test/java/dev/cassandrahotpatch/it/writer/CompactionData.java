/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import static org.assertj.core.api.Assertions.assertThat;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.cql.Statement;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletionStage;
import java.util.stream.Stream;

/**
 * Eight SSTables that overlap, written by a stock node through CQL from a seed: rows written over, with and without a time to
 * live, and deletions of rows, ranges and partitions. None expires or can be purged while a test runs, and all timestamps
 * are given, so that what a compaction makes of them is a function of them. Knows what every row must read like.
 */
final class CompactionData {
    static final String KEYSPACE = "writer";
    static final int SSTABLES = 8;
    static final int NAMES = 50;

    private static final String COLUMNS =
            " (id int, c int, name text, note text, value text, PRIMARY KEY (id, c)) WITH compression = %s"
                    + " AND compaction = %s";
    /** For 6.0, whose own format and compaction without iterators are for SSTables that 5.0 need not read. */
    static final String NEWEST_FORMAT = "storage_compatibility_mode: NONE";

    private static final String IDLE = "{'class': 'SizeTieredCompactionStrategy', 'enabled': false}";
    private static final Map<String, CompactionData> WRITTEN = new HashMap<>();

    private static final int WRITES = 2_500; // in each SSTable
    private static final int PARTITIONS = 800;
    private static final int CLUSTERINGS = 20;
    private static final int VALUE_BYTES = 4_800;
    private static final int YEAR_SECONDS = 365 * 24 * 3600;
    private static final int UNACKNOWLEDGED = 64;

    /** What a row must read like. */
    private record Expected(String name, int hash) {}

    private final Path folder;
    private final Random random;
    private final String[] words = new String[2_000];
    /** By partition, then by clustering. */
    private final Map<Integer, TreeMap<Integer, Expected>> rows = new TreeMap<>();

    private final Deque<CompletionStage<?>> unacknowledged = new ArrayDeque<>();
    private long timestamp = 1_700_000_000_000_000L;

    private CompactionData(Path folder, long seed) {
        this.folder = folder;
        this.random = new Random(seed);
        for (int i = 0; i < words.length; i++) {
            StringBuilder word = new StringBuilder();
            for (int left = 3 + random.nextInt(7); left > 0; left--) {
                word.append((char) ('a' + random.nextInt(26)));
            }
            words[i] = word.toString();
        }
    }

    /** The SSTables of a release; the first call has a stock node write them, and the end of this JVM deletes them. */
    static synchronized CompactionData of(String version) throws IOException {
        CompactionData data = WRITTEN.get(version);
        if (data == null) {
            Path folder = Files.createTempDirectory("compaction-data");
            Runtime.getRuntime().addShutdownHook(new Thread(() -> delete(folder), "delete-data"));
            long seed = Long.getLong("writer.seed", new Random().nextInt());
            System.out.println("[writer] rows of -Dwriter.seed=" + seed + " on " + version);
            // imports take the names of the last two folders for those of a keyspace and a table
            data = new CompactionData(Files.createDirectories(folder.resolve(KEYSPACE + "/source")), seed);
            data.write(version, folder);
            WRITTEN.put(version, data);
        }
        return data;
    }

    private static void delete(Path folder) {
        try (Stream<Path> paths = Files.walk(folder)) {
            for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        } catch (IOException e) {
            System.err.println("[writer] " + folder + " stays: " + e);
        }
    }

    private void write(String version, Path home) throws IOException {
        try (WriterNode node = WriterNode.start(version, false, home, version.startsWith("6") ? NEWEST_FORMAT : "")
                .awaitStarted()) {
            createKeyspace(node, false);
            createTable(node, "source", "{'class': 'LZ4Compressor'}", IDLE);
            for (int i = 0; i < SSTABLES; i++) {
                writeSome(node);
                node.flush("source");
            }
            for (SSTableFiles sstable : node.files("source")) {
                for (Path file : sstable.components().values()) {
                    Files.createLink(folder.resolve(file.getFileName()), file);
                }
            }
        }
        assertThat(SSTableFiles.settled(folder).orElseThrow()).hasSize(SSTABLES);
    }

    static void createKeyspace(WriterNode node, boolean durable) {
        node.execute("CREATE KEYSPACE IF NOT EXISTS " + KEYSPACE
                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1} AND durable_writes = "
                + durable);
    }

    static void createTable(WriterNode node, String table, String compression, String compaction) {
        node.execute("CREATE TABLE " + KEYSPACE + "." + table + COLUMNS.formatted(compression, compaction));
    }

    /** Makes a table, with no compactions but those asked for, of the SSTables. */
    void load(WriterNode node, String table, String compression, String compaction) {
        createTable(node, table, compression, compaction);
        node.storage("disableAutoCompaction", KEYSPACE, new String[] {table});
        node.importSSTables(table, folder);
        assertThat(node.files(table))
                .as("SSTables imported into %s of %s", table, node)
                .hasSize(SSTABLES);
    }

    private void writeSome(WriterNode node) {
        CqlSession cql = node.node().cql();
        String table = KEYSPACE + ".source";
        PreparedStatement insert = cql.prepare(
                "INSERT INTO " + table + " (id, c, name, note, value) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?");
        PreparedStatement insertToLive = cql.prepare("INSERT INTO " + table
                + " (id, c, name, note, value) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL " + YEAR_SECONDS);
        PreparedStatement deleteRow = cql.prepare("DELETE FROM " + table + " USING TIMESTAMP ? WHERE id = ? AND c = ?");
        PreparedStatement deleteRange =
                cql.prepare("DELETE FROM " + table + " USING TIMESTAMP ? WHERE id = ? AND c > ?");
        PreparedStatement deletePartition = cql.prepare("DELETE FROM " + table + " USING TIMESTAMP ? WHERE id = ?");
        for (int i = 0; i < WRITES; i++) {
            int id = random.nextInt(PARTITIONS);
            int c = random.nextInt(CLUSTERINGS);
            timestamp++;
            TreeMap<Integer, Expected> partition = rows.computeIfAbsent(id, absent -> new TreeMap<>());
            int choice = random.nextInt(100);
            if (choice < 3) {
                send(cql, deleteRow.bind(timestamp, id, c));
                partition.remove(c);
            } else if (choice < 5) {
                send(cql, deleteRange.bind(timestamp, id, c));
                partition.tailMap(c, false).clear();
            } else if (choice < 6) {
                send(cql, deletePartition.bind(timestamp, id));
                partition.clear();
            } else {
                String name = "name" + random.nextInt(NAMES);
                String note = words[random.nextInt(words.length)];
                String value = value();
                send(cql, (choice < 20 ? insertToLive : insert).bind(id, c, name, note, value, timestamp));
                partition.put(c, new Expected(name, hash(note, value, timestamp)));
            }
        }
        unacknowledged.forEach(each -> each.toCompletableFuture().join());
        unacknowledged.clear();
    }

    private void send(CqlSession cql, Statement<?> statement) {
        if (unacknowledged.size() == UNACKNOWLEDGED) {
            unacknowledged.removeFirst().toCompletableFuture().join();
        }
        unacknowledged.addLast(cql.executeAsync(statement));
    }

    private String value() {
        StringBuilder value = new StringBuilder(VALUE_BYTES + 10);
        while (value.length() < VALUE_BYTES) {
            value.append(words[random.nextInt(words.length)]).append(' ').append(random.nextInt());
        }
        return value.toString();
    }

    private static int hash(String note, String value, long timestamp) {
        return (31 * note.hashCode() + value.hashCode()) * 31 + Long.hashCode(timestamp);
    }

    /** Reads all rows of a table and compares each with what was written. */
    void assertReadBack(WriterNode node, String table) {
        int read = 0;
        for (Row row : node.node()
                .cql()
                .execute(SimpleStatement.newInstance(
                                "SELECT id, c, name, note, value, WRITETIME(value) FROM " + KEYSPACE + "." + table)
                        .setPageSize(200)
                        .setTimeout(Duration.ofSeconds(60)))) {
            Expected expected =
                    rows.getOrDefault(row.getInt(0), new TreeMap<>()).get(row.getInt(1));
            assertThat(new Expected(row.getString(2), hash(row.getString(3), row.getString(4), row.getLong(5))))
                    .as("row %d, %d of %s in %s", row.getInt(0), row.getInt(1), table, node)
                    .isEqualTo(expected);
            read++;
        }
        assertThat(read).as("rows of %s in %s", table, node).isEqualTo(rows());
    }

    /** How many rows are live. */
    int rows() {
        return rows.values().stream().mapToInt(Map::size).sum();
    }

    /** How many live rows have a name. */
    long rowsWithName(String name) {
        return rows.values().stream()
                .flatMap(partition -> partition.values().stream())
                .filter(row -> row.name().equals(name))
                .count();
    }
}
