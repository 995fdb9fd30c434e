/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import java.nio.ByteBuffer;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.cassandra.cache.CaffeineCache;
import org.apache.cassandra.cache.CounterCacheKey;
import org.apache.cassandra.cache.InstrumentingCache;
import org.apache.cassandra.cache.KeyCacheKey;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ClockAndCount;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.RowIndexEntry;
import org.apache.cassandra.db.marshal.BytesType;
import org.apache.cassandra.db.marshal.CounterColumnType;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SequenceBasedSSTableId;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * {@code cache_capacity}: what the reads and counter writes of 4.1 do with their caches. Methods that end in
 * {@code AsUpstream} ask for the size instead of the capacity, as the ticket's diff does.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public class CacheCapacityBenchmark {
    private static final int KEYS = 10_000;
    private static final long SEED = 19429;

    static {
        DatabaseDescriptor.clientInitialization(false);
    }

    private final TableMetadata table = TableMetadata.builder("ks", "t")
            .partitioner(Murmur3Partitioner.instance)
            .isCounter(true)
            .addPartitionKeyColumn("k", BytesType.instance)
            .addRegularColumn("c", CounterColumnType.instance)
            .build();
    private final ColumnMetadata column = table.getColumn(ByteBufferUtil.bytes("c"));
    private final Descriptor sstable = new Descriptor(new File("ks/t"), "ks", "t", new SequenceBasedSSTableId(1));
    private final RowIndexEntry<?> entry = new RowIndexEntry<>(42);
    private final ByteBuffer[] keys = new ByteBuffer[KEYS];

    private InstrumentingCache<KeyCacheKey, RowIndexEntry<?>> keyCache;
    private InstrumentingCache<CounterCacheKey, ClockAndCount> counterCache;

    /** Which key a thread is at. */
    @State(Scope.Thread)
    public static class Position {
        private int at;

        int next() {
            at = at + 1 == KEYS ? 0 : at + 1;
            return at;
        }
    }

    /** How many reads found their key in the cache; public as JMH wants it. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Hits {
        public long hits;
    }

    /** Fills both caches, which stay far from full. */
    @Setup
    public void fill() {
        keyCache = new InstrumentingCache<>("KeyCache", CaffeineCache.create(100 << 20));
        counterCache = new InstrumentingCache<>("CounterCache", CaffeineCache.create(100 << 20));
        for (int i = 0; i < KEYS; i++) {
            keys[i] = ByteBufferUtil.bytes((long) i);
            keyCache.put(new KeyCacheKey(table, sstable, keys[i]), entry);
            counterCache.put(counterKey(i), ClockAndCount.create(1, i));
        }
    }

    private CounterCacheKey counterKey(int key) {
        return CounterCacheKey.create(table, keys[key], Clustering.EMPTY, column, null);
    }

    @Benchmark
    public boolean capacity() {
        return keyCache.getCapacity() == 0;
    }

    @Benchmark
    public boolean capacityAsUpstream() {
        return keyCache.size() == 0;
    }

    /** As {@code SSTableReader.cacheKey}, after a read that went to the index. */
    @Benchmark
    public void cacheKey(Position position) {
        if (keyCache.getCapacity() == 0) {
            return;
        }
        keyCache.put(new KeyCacheKey(table, sstable, keys[position.next()]), entry);
    }

    @Benchmark
    public void cacheKeyAsUpstream(Position position) {
        if (keyCache.size() == 0) {
            return;
        }
        keyCache.put(new KeyCacheKey(table, sstable, keys[position.next()]), entry);
    }

    /** As {@code ColumnFamilyStore.getCachedCounter}, before a counter is written. */
    @Benchmark
    public ClockAndCount cachedCounter(Position position) {
        if (counterCache.getCapacity() == 0L) {
            return null;
        }
        return counterCache.get(counterKey(position.next()));
    }

    /** Reads {@value #KEYS} keys ten times over, in random order, with a key cache that starts empty. */
    @Benchmark
    @BenchmarkMode(Mode.SingleShotTime)
    @OutputTimeUnit(TimeUnit.MILLISECONDS)
    public void firstReads(Hits hits) {
        keyCache.clear();
        Random random = new Random(SEED);
        for (int i = 0; i < 10 * KEYS; i++) {
            ByteBuffer key = keys[random.nextInt(KEYS)];
            if (keyCache.get(new KeyCacheKey(table, sstable, key)) != null) {
                hits.hits++;
            } else if (keyCache.getCapacity() != 0) {
                keyCache.put(new KeyCacheKey(table, sstable, key), entry);
            }
        }
    }

    @Benchmark
    @BenchmarkMode(Mode.SingleShotTime)
    @OutputTimeUnit(TimeUnit.MILLISECONDS)
    public void firstReadsAsUpstream(Hits hits) {
        keyCache.clear();
        Random random = new Random(SEED);
        for (int i = 0; i < 10 * KEYS; i++) {
            ByteBuffer key = keys[random.nextInt(KEYS)];
            if (keyCache.get(new KeyCacheKey(table, sstable, key)) != null) {
                hits.hits++;
            } else if (keyCache.size() != 0) {
                keyCache.put(new KeyCacheKey(table, sstable, key), entry);
            }
        }
    }
}
