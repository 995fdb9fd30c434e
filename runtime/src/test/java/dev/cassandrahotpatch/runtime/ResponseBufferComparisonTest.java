/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.ToIntFunction;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.junit.jupiter.api.Test;

/**
 * Bytes allocated for responses: stock, upstream's algorithm (6.0), ours, and the floor, on the same sizes.
 *
 * <p>Bytes are counted by the JVM ({@code getThreadAllocatedBytes}), which is exact on the thread that allocates: arrays,
 * {@code ByteBuffer}s and {@code DataOutputBuffer}s, from the first response on, learning included. What each leaves
 * behind is published to a field, so that the compiler can't do away with any of it.
 */
class ResponseBufferComparisonTest {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    /** Half of G1's smallest region: an array of this size or more, header included, is humongous on a small heap. */
    private static final int LARGE = 512 * 1024 - 16;

    private static final long SEED = Long.getLong("seed", 21285);

    /** What is published can't be optimised away. */
    static volatile Object sink;

    private record Response(int table, int size) {}

    /** Responses to make; {@code alike} if each table's have one size. */
    private record Workload(String name, boolean alike, List<Response> responses) {
        static Workload of(String name, boolean alike, ToIntFunction<Random> size) {
            return mix(name, alike, List.of(size));
        }

        /** As many responses as make about 40 MB, 600 to 20,000, from tables drawn evenly. */
        static Workload mix(String name, boolean alike, List<ToIntFunction<Random>> tables) {
            Random random = new Random(SEED);
            double mean = 0;
            for (int i = 0; i < 1_000; i++) {
                mean += tables.get(i % tables.size()).applyAsInt(random) / 1_000.0;
            }
            int count = (int) Math.max(600, Math.min(20_000, 40e6 / mean));
            List<Response> responses = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                int table = random.nextInt(tables.size());
                responses.add(new Response(table, tables.get(table).applyAsInt(random)));
            }
            return new Workload(name, alike, responses);
        }

        long bytes() {
            long bytes = 0;
            for (Response response : responses) {
                bytes += response.size();
            }
            return bytes;
        }
    }

    private static ToIntFunction<Random> constant(int size) {
        return random -> size;
    }

    private static ToIntFunction<Random> logNormal(double median, double sigma) {
        return random ->
                (int) Math.max(20, Math.min(ResponseWriter.LARGEST, median * Math.exp(sigma * random.nextGaussian())));
    }

    /** Two modes, each spread by this fraction of itself (standard deviation). */
    private static ToIntFunction<Random> bimodal(int percent, int small, int large, double spread) {
        return random -> (int) ((random.nextInt(100) < percent ? small : large) * (1 + spread * random.nextGaussian()));
    }

    private static List<Workload> workloads() {
        List<Workload> workloads = new ArrayList<>();
        for (int size : new int[] {500, 2_000, 10_000, 65_536, 1_000_000}) {
            workloads.add(Workload.of(String.format("constant %,d", size), true, constant(size)));
        }
        for (double sigma : new double[] {0.25, 0.5, 1, 1.5}) {
            for (int median : new int[] {500, 4_000, 30_000}) {
                workloads.add(Workload.of(
                        String.format("log-normal, median %,d, sigma %s", median, sigma),
                        false,
                        logNormal(median, sigma)));
            }
        }
        for (int percent : new int[] {90, 50, 10}) {
            String name = percent + "% 500, " + (100 - percent) + "% 100,000";
            workloads.add(Workload.of(name, false, bimodal(percent, 500, 100_000, 0)));
            workloads.add(Workload.of(name + ", each +-10%", false, bimodal(percent, 500, 100_000, 0.1)));
        }
        workloads.add(Workload.of("50% 1,000, 50% 1,999", false, bimodal(50, 1_000, 1_999, 0)));
        workloads.add(Workload.mix(
                "four tables: 300; 60,000; 4,000 +-; two modes",
                false,
                List.of(constant(300), constant(60_000), logNormal(4_000, 1), bimodal(90, 500, 100_000, 0.1))));
        return workloads;
    }

    /** A way to come by a response's buffer, and to take the response out of it. */
    private interface Buffers {
        DataOutputBuffer start(int table, int size);

        ByteBuffer finish(DataOutputBuffer buffer, int table);
    }

    private static final Buffers STOCK = new Buffers() {
        @Override
        public DataOutputBuffer start(int table, int size) {
            return new DataOutputBuffer();
        }

        @Override
        public ByteBuffer finish(DataOutputBuffer buffer, int table) {
            return buffer.buffer();
        }
    };

    private static final Buffers FLOOR = new Buffers() {
        @Override
        public DataOutputBuffer start(int table, int size) {
            return new DataOutputBuffer(size);
        }

        @Override
        public ByteBuffer finish(DataOutputBuffer buffer, int table) {
            return buffer.buffer(false);
        }
    };

    /** What 6.0-alpha2 does in ReadResponse: a tenth more than the moving average of all responses, at most 4,096. */
    private static final class Upstream implements Buffers {
        private double average = Double.NaN;

        @Override
        public DataOutputBuffer start(int table, int size) {
            return new DataOutputBuffer(Math.min((int) (Double.isNaN(average) ? 128 : average * 1.1), 4096));
        }

        @Override
        public ByteBuffer finish(DataOutputBuffer buffer, int table) {
            int size = buffer.getLength();
            average = Double.isNaN(average) ? size : average + 0.0046 * (size - average);
            return buffer.buffer(false);
        }
    }

    private static final class Ours implements Buffers {
        private final ResponseBufferSizes sizes;
        private final FakePartitions[] tables = new FakePartitions[4];

        Ours(int maxInitialBytes) {
            sizes = new ResponseBufferSizes(maxInitialBytes, ResponseBufferSizes.MOST_SPARE_BYTES);
            for (int i = 0; i < tables.length; i++) {
                tables[i] = FakePartitions.ofNewTable();
            }
        }

        @Override
        public DataOutputBuffer start(int table, int size) {
            return sizes.startFor(tables[table]);
        }

        @Override
        public ByteBuffer finish(DataOutputBuffer buffer, int table) {
            return sizes.finishFor(buffer, tables[table]);
        }
    }

    /**
     * What a run came to.
     *
     * @param allocated bytes allocated for each byte of response
     * @param held bytes of array that the responses go on holding, for each of theirs
     * @param large arrays of {@link #LARGE} bytes and more, for each response
     */
    private record Figures(double allocated, double held, double large) {
        @Override
        public String toString() {
            return String.format("%6.3f %6.3f", allocated, held);
        }
    }

    private static Figures measure(Buffers buffers, Workload workload, ResponseWriter writer) {
        long held = 0;
        long large = 0;
        long before = THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
        for (Response next : workload.responses()) {
            int size = next.size();
            DataOutputBuffer buffer = buffers.start(next.table(), size);
            sink = buffer;
            int first = buffer.getData().length;
            writer.fill(buffer, size);
            int last = buffer.getData().length;
            ByteBuffer response = buffers.finish(buffer, next.table());
            sink = response;
            held += response.capacity();
            large += largeArrays(first, last) + (response.capacity() != last && size >= LARGE ? 1 : 0);
        }
        double bytes = workload.bytes();
        return new Figures(
                (THREADS.getThreadAllocatedBytes(Thread.currentThread().getId()) - before) / bytes,
                held / bytes,
                (double) large / workload.responses().size());
    }

    /** Large arrays on the way from one capacity to another by doubling. */
    private static int largeArrays(long first, int last) {
        int large = 0;
        for (long capacity = first; capacity <= last; capacity *= 2) {
            large += capacity >= LARGE ? 1 : 0;
        }
        return large;
    }

    @Test
    void oursAllocatesLessThanStockAndUpstreamAndHoldsNoMoreThanStock() {
        int max = ResponseBufferSizes.DEFAULT_MAX_INITIAL_BYTES;
        for (ResponseWriter writer : ResponseWriter.values()) {
            System.out.printf(
                    "%n%s, seed %d: bytes allocated and held for each byte of response%n%-46s%14s%14s%14s%14s%n",
                    writer, SEED, "", "stock", "6.0", "ours", "exact size");
            for (Workload workload : workloads()) {
                Figures stock = measure(STOCK, workload, writer);
                Figures upstream = measure(new Upstream(), workload, writer);
                Figures ours = measure(new Ours(max), workload, writer);
                Figures floor = measure(FLOOR, workload, writer);
                System.out.printf("%-46s %s %s %s %s%n", workload.name(), stock, upstream, ours, floor);

                String as = workload.name() + ", " + writer;
                assertThat(ours.allocated()).as(as).isLessThan(0.95 * stock.allocated());
                assertThat(ours.allocated()).as(as).isLessThan(0.95 * upstream.allocated());
                assertThat(ours.held()).as(as).isLessThanOrEqualTo(stock.held());
                assertThat(ours.large()).as(as).isLessThanOrEqualTo(stock.large());
                if (workload.alike()) { // what is more is the first responses, and the spare array
                    assertThat(ours.allocated()).as(as).isLessThan(1.08 * floor.allocated());
                }
            }
        }
    }

    @Test
    void noResponseHoldsMoreThanStocksDoubling() {
        for (Workload workload : workloads()) {
            Ours ours = new Ours(ResponseBufferSizes.DEFAULT_MAX_INITIAL_BYTES);
            for (Response next : workload.responses()) {
                int size = next.size();
                DataOutputBuffer stock = STOCK.start(0, size);
                ResponseWriter.SMALL_PIECES.fill(stock, size);
                DataOutputBuffer buffer = ours.start(next.table(), size);
                ResponseWriter.SMALL_PIECES.fill(buffer, size);
                ByteBuffer response = ours.finish(buffer, next.table());
                if (response.capacity() > stock.getData().length) {
                    throw new AssertionError(String.format(
                            "%s: %,d bytes hold %,d, stock's %,d",
                            workload.name(), size, response.capacity(), stock.getData().length));
                }
            }
        }
    }

    /** The table that the default of {@code max_initial_bytes} was chosen from. */
    @Test
    void aLargerCapAllocatesNoMore() {
        int[] caps = {4 << 10, 64 << 10, 256 << 10, 1 << 20};
        List<Workload> workloads = List.of(
                Workload.of("constant 10,000", true, constant(10_000)),
                Workload.of("constant 65,536", true, constant(65_536)),
                Workload.of("constant 250,000", true, constant(250_000)),
                Workload.of("constant 1,000,000", true, constant(1_000_000)),
                Workload.of("log-normal, median 30,000, sigma 0.5", false, logNormal(30_000, 0.5)),
                Workload.of("log-normal, median 30,000, sigma 1.5", false, logNormal(30_000, 1.5)),
                Workload.of("log-normal, median 300,000, sigma 0.5", false, logNormal(300_000, 0.5)),
                Workload.of("50% 500, 50% 100,000", false, bimodal(50, 500, 100_000, 0.1)),
                Workload.of("10% 500, 90% 1,000,000", false, bimodal(10, 500, 1_000_000, 0)),
                Workload.of("60% 500, 40% 1,000,000", false, bimodal(60, 500, 1_000_000, 0)));
        for (ResponseWriter writer : ResponseWriter.values()) {
            System.out.printf(
                    "%n%s: bytes allocated for each byte of response, and arrays of 512 KiB and more a response%n%-40s%20s",
                    writer, "max_initial_bytes", "(stock)");
            for (int cap : caps) {
                System.out.printf("%,20d", cap);
            }
            System.out.println();
            for (Workload workload : workloads) {
                Figures last = measure(STOCK, workload, writer);
                System.out.printf("%-40s%13.3f %6.2f", workload.name(), last.allocated(), last.large());
                for (int cap : caps) {
                    Figures figures = measure(new Ours(cap), workload, writer);
                    System.out.printf("%13.3f %6.2f", figures.allocated(), figures.large());
                    assertThat(figures.allocated()).as(workload.name()).isLessThan(1.01 * last.allocated());
                    last = figures;
                }
                System.out.println();
            }
        }
    }

    /** Prints, and asserts nothing: times on a shared machine prove nothing. */
    @Test
    void whatItCosts() throws Exception {
        System.out.printf(
                "%nns a response, best of 7 (start, one large value, finish), all threads on one table%n%-28s%8s%12s%12s%n",
                "", "threads", "stock", "ours");
        for (int size : new int[] {100, 1_000, 10_000}) {
            for (Workload workload : List.of(
                    Workload.of(String.format("constant %,d", size), true, constant(size)),
                    Workload.of(
                            String.format("%,d to %,d", size / 2, size * 3 / 2),
                            false,
                            random -> size / 2 + random.nextInt(size)))) {
                for (int threads = 1; threads <= 2; threads++) {
                    System.out.printf(
                            "%-28s%8d%12d%12d%n",
                            workload.name(),
                            threads,
                            time(STOCK, workload, threads),
                            time(new Ours(ResponseBufferSizes.DEFAULT_MAX_INITIAL_BYTES), workload, threads));
                }
            }
        }
    }

    private static long time(Buffers buffers, Workload workload, int threads) throws Exception {
        List<Response> responses = workload.responses();
        Object[] sinks = new Object[threads * 64]; // a cache line and more apart
        ExecutorService executor = Executors.newFixedThreadPool(threads);
        try {
            long best = Long.MAX_VALUE;
            for (int round = 0; round < 7; round++) {
                List<Callable<Object>> tasks = new ArrayList<>();
                for (int t = 0; t < threads; t++) {
                    int sink = t * 64;
                    tasks.add(() -> {
                        for (Response next : responses) {
                            DataOutputBuffer buffer = buffers.start(0, next.size());
                            ResponseWriter.ONE_LARGE_VALUE.fill(buffer, next.size());
                            sinks[sink] = buffers.finish(buffer, 0);
                        }
                        return null;
                    });
                }
                long start = System.nanoTime();
                for (Future<Object> future : executor.invokeAll(tasks)) {
                    future.get();
                }
                best = Math.min(best, (System.nanoTime() - start) / responses.size());
            }
            return best;
        } finally {
            executor.shutdownNow();
        }
    }
}
