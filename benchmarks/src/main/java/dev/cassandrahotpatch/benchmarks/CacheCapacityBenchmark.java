/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import java.util.concurrent.TimeUnit;
import org.apache.cassandra.cache.CaffeineCache;
import org.apache.cassandra.cache.IMeasurableMemory;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** {@code cache_capacity}: what every read of a row does with the key cache of 4.1, beside looking into it. */
@State(Scope.Benchmark)
@Fork(2)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public class CacheCapacityBenchmark {
    private final CaffeineCache<Entry, Entry> cache = CaffeineCache.create(100_000_000);

    /** As {@code SSTableReader.cacheKey} and the counter cache's users ask. */
    @Benchmark
    public boolean capacityIsZero() {
        return cache.capacity() == 0;
    }

    private static final class Entry implements IMeasurableMemory {
        @Override
        public long unsharedHeapSize() {
            return 100;
        }
    }
}
