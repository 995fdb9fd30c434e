/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import com.google.common.util.concurrent.AtomicDouble;
import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.ToIntFunction;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.marshal.BytesType;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.partitions.SingletonUnfilteredPartitionIterator;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterators;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.net.MessagingService;
import org.apache.cassandra.schema.TableMetadata;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * {@code response_buffer_sizing}: 4.1's own {@code ReadResponse.LocalDataResponse.build} on partitions in memory, and the same
 * few lines with other buffers. What it takes to serialise the rows is in all of them.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public class ResponseBufferBenchmark {
    private static final long SEED = 21285;
    private static final int LARGEST_VALUE = 1_000;
    private static final int UPSTREAM_MOST_BYTES = 4096;
    /** Final, so that the JIT compiler inlines it like a call. */
    private static final MethodHandle BUILD = build();

    /** Of the responses that one iteration repeats in this order; each is about as large as its name says. */
    @Param({
        "100 B",
        "1 kB",
        "10 kB",
        "100 kB",
        "1 MB",
        "log-normal around 4 kB",
        "90% 500 B and 10% 100 kB",
        "four tables"
    })
    public String responses;

    private final List<PartitionUpdate> partitions = new ArrayList<>();
    private final List<Integer> sizes = new ArrayList<>();
    private final AtomicDouble average = new AtomicDouble(Double.NaN);

    /** Which partition a thread reads. */
    @State(Scope.Thread)
    public static class Position {
        private int at;

        int next(int count) {
            at = at + 1 >= count ? 0 : at + 1;
            return at;
        }
    }

    /** Makes the partitions: the same ones for every variant. */
    @Setup
    public void makePartitions() throws IOException {
        Random random = new Random(SEED);
        switch (responses) {
            case "100 B" -> add(1, table(0), random, any -> 100);
            case "1 kB" -> add(1, table(0), random, any -> 1_000);
            case "10 kB" -> add(1, table(0), random, any -> 10_000);
            case "100 kB" -> add(1, table(0), random, any -> 100_000);
            case "1 MB" -> add(1, table(0), random, any -> 1_000_000);
            case "log-normal around 4 kB" -> add(256, table(0), random, logNormal(4_000, 1));
            case "90% 500 B and 10% 100 kB" -> add(256, table(0), random, ResponseBufferBenchmark::twoModes);
            case "four tables" -> {
                List<ToIntFunction<Random>> tables =
                        List.of(any -> 300, any -> 60_000, logNormal(4_000, 1), ResponseBufferBenchmark::twoModes);
                for (int i = 0; i < 256; i++) {
                    int number = random.nextInt(tables.size());
                    add(1, table(number), random, tables.get(number));
                }
            }
            default -> throw new IllegalArgumentException(responses);
        }
        for (PartitionUpdate partition : partitions) {
            try (DataOutputBuffer buffer = new DataOutputBuffer()) {
                serialize(iterator(partition), ColumnFilter.all(partition.metadata()), buffer);
                sizes.add(buffer.getLength());
            }
        }
    }

    private static ToIntFunction<Random> logNormal(int median, double sigma) {
        return random -> (int) Math.min(1_000_000, median * Math.exp(sigma * random.nextGaussian()));
    }

    private static int twoModes(Random random) {
        return random.nextInt(10) == 0 ? 100_000 : 500;
    }

    private static TableMetadata table(int number) {
        return TABLES.get(number);
    }

    private static final List<TableMetadata> TABLES = tables();

    private static List<TableMetadata> tables() {
        DatabaseDescriptor.clientInitialization(false);
        List<TableMetadata> tables = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            tables.add(TableMetadata.builder("ks", "t" + i)
                    .partitioner(Murmur3Partitioner.instance)
                    .addPartitionKeyColumn("k", Int32Type.instance)
                    .addClusteringColumn("c", Int32Type.instance)
                    .addRegularColumn("v", BytesType.instance)
                    .build());
        }
        return tables;
    }

    private void add(int count, TableMetadata table, Random random, ToIntFunction<Random> size) {
        for (int i = 0; i < count; i++) {
            int bytes = size.applyAsInt(random);
            PartitionUpdate.SimpleBuilder partition =
                    PartitionUpdate.simpleBuilder(table, partitions.size()).timestamp(1);
            int overhead = 60; // a partition's and its first row's, about
            for (int row = 0, left = bytes - overhead; row == 0 || left > 0; row++, left -= LARGEST_VALUE) {
                byte[] value = new byte[Math.max(1, Math.min(LARGEST_VALUE, left))];
                random.nextBytes(value);
                partition.row(row).add("v", ByteBuffer.wrap(value));
            }
            partitions.add(partition.build());
        }
    }

    private static UnfilteredPartitionIterator iterator(PartitionUpdate partition) {
        return new SingletonUnfilteredPartitionIterator(partition.unfilteredIterator());
    }

    private static void serialize(UnfilteredPartitionIterator rows, ColumnFilter columns, DataOutputBuffer buffer)
            throws IOException {
        UnfilteredPartitionIterators.serializerForIntraNode()
                .serialize(rows, columns, buffer, MessagingService.current_version);
    }

    private static MethodHandle build() {
        try {
            Class<?> response = Class.forName("org.apache.cassandra.db.ReadResponse$LocalDataResponse");
            return MethodHandles.privateLookupIn(response, MethodHandles.lookup())
                    .findStatic(
                            response,
                            "build",
                            MethodType.methodType(
                                    ByteBuffer.class, UnfilteredPartitionIterator.class, ColumnFilter.class));
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** The release's own method, patched where the agent is. */
    @Benchmark
    public ByteBuffer respond(Position position) throws Throwable {
        PartitionUpdate partition = partitions.get(position.next(partitions.size()));
        return (ByteBuffer) BUILD.invokeExact(iterator(partition), ColumnFilter.all(partition.metadata()));
    }

    /** What 6.0-alpha2 does: a tenth more than the moving average of all responses, at most 4,096. */
    @Benchmark
    public ByteBuffer respondAsUpstream(Position position) throws IOException {
        PartitionUpdate partition = partitions.get(position.next(partitions.size()));
        double estimate = average.get();
        int first = Math.min(Double.isNaN(estimate) ? 128 : (int) (estimate * 1.1), UPSTREAM_MOST_BYTES);
        try (DataOutputBuffer buffer = new DataOutputBuffer(first)) {
            serialize(iterator(partition), ColumnFilter.all(partition.metadata()), buffer);
            learn(buffer.getLength());
            return buffer.buffer(false);
        }
    }

    private void learn(int size) {
        double before;
        double after;
        do {
            before = average.get();
            after = Double.isNaN(before) ? size : before + 0.0046 * (size - before);
        } while (!average.compareAndSet(before, after));
    }

    /** A first array of just the right size. */
    @Benchmark
    public ByteBuffer respondExactly(Position position) throws IOException {
        int at = position.next(partitions.size());
        PartitionUpdate partition = partitions.get(at);
        try (DataOutputBuffer buffer = new DataOutputBuffer(sizes.get(at))) {
            serialize(iterator(partition), ColumnFilter.all(partition.metadata()), buffer);
            return buffer.buffer(false);
        }
    }
}
