/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.Test;

class ResponseBufferSizesTest {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private final ResponseBufferSizes sizes = new ResponseBufferSizes(
            ResponseBufferSizes.DEFAULT_MAX_INITIAL_BYTES, ResponseBufferSizes.MOST_SPARE_BYTES);
    private final FakePartitions table = FakePartitions.ofNewTable();

    @Test
    void aResponseEqualsStocksByteForByteAndStaysSo() {
        long seed = System.nanoTime();
        System.out.println("aResponseEqualsStocksByteForByteAndStaysSo: seed " + seed);
        Random random = new Random(seed);
        FakePartitions steady = FakePartitions.ofNewTable();
        List<ByteBuffer> responses = new ArrayList<>();
        List<ByteBuffer> stocks = new ArrayList<>();
        for (int i = 0; i < 4_000; i++) {
            boolean alike = random.nextBoolean();
            int size = alike ? 700 + random.nextInt(20) : (int) Math.exp(random.nextDouble() * Math.log(400_000));
            ResponseWriter writer = random.nextBoolean() ? ResponseWriter.SMALL_PIECES : ResponseWriter.ONE_LARGE_VALUE;
            DataOutputBuffer stock = new DataOutputBuffer();
            writer.fill(stock, size);
            responses.add(respond(alike ? steady : table, writer, size));
            stocks.add(stock.buffer());
            if (random.nextInt(100) == 0) {
                DataOutputBuffer aborted = sizes.startFor(table); // a read that fails half way never finishes
                ResponseWriter.SMALL_PIECES.fill(aborted, 1 + random.nextInt(100_000));
            }
        }

        // only now: a response that shared an array with a later one would have been overwritten
        for (int i = 0; i < responses.size(); i++) {
            ByteBuffer response = responses.get(i);
            assertThat(response).as("response %d", i).isEqualTo(stocks.get(i));
            assertThat(response.position()).isZero();
            assertThat(response.hasArray()).isTrue();
            assertThat(response.arrayOffset()).isZero();
            assertThat(response.isReadOnly()).isFalse();
            assertThat(response.order()).isEqualTo(stocks.get(i).order());
        }
        assertThat(initialBytes(steady)).isBetween(700, 720);
        assertThat(sizes.failure).hasValue(null);
    }

    @Test
    void sizesThatAreAlikeAreLearntFromTheFirstResponses() {
        respond(table, 10_000, 16);
        assertThat(initialBytes(table)).isEqualTo(10_000);
        assertThat(respond(table, ResponseWriter.SMALL_PIECES, 10_000).capacity())
                .isEqualTo(10_000);
    }

    @Test
    void aResponseOfANewTableTakesNoMoreThanItsSize() {
        ByteBuffer response = respond(table, ResponseWriter.SMALL_PIECES, 10_000);

        assertThat(response.capacity()).isEqualTo(10_000);
    }

    @Test
    void aChangeOfSizesIsFollowedUpAndDown() {
        respond(table, 1_000, 5_000);
        for (int size : new int[] {10_000, 1_000, 10_000}) {
            respond(table, size, 2_000);
            assertThat(sizes.startFor(table).getData())
                    .as("by now, a response of %d fits where it starts", size)
                    .hasSizeGreaterThanOrEqualTo(size);
            assertThat(respond(table, ResponseWriter.SMALL_PIECES, size).capacity())
                    .isEqualTo(size);
            respond(table, size, 12_000);
            assertThat(initialBytes(table)).as("the past is forgotten").isEqualTo(size);
        }
    }

    @Test
    void anOutlierIsForgotten() {
        respond(table, 1_000, 16);
        respond(table, 1_015, 1); // in the same bucket, so that it becomes the bucket's largest
        respond(table, 1_000, 20_000);

        assertThat(initialBytes(table)).isEqualTo(1_000);
    }

    @Test
    void tablesAreIndependent() {
        FakePartitions other = FakePartitions.ofNewTable();
        for (int i = 0; i < 2_000; i++) {
            respond(table, 500, 1);
            respond(other, 50_000, 1);
        }

        assertThat(initialBytes(table)).isEqualTo(500);
        assertThat(initialBytes(other)).isEqualTo(50_000);
    }

    @Test
    void aRecreatedTableLearnsAnew() {
        respond(table, 500, 2_000);
        FakePartitions recreated = FakePartitions.ofNewTable();
        assertThat(recreated.metadata().name).isEqualTo(table.metadata().name);

        respond(recreated, 20_000, 15);
        assertThat(initialBytes(recreated)).isEqualTo(TableSizes.SPARE);
        respond(recreated, 20_000, 1);
        assertThat(initialBytes(recreated)).isEqualTo(20_000);
        assertThat(initialBytes(table)).isEqualTo(500);
    }

    @Test
    void aSmallResponseOfATableOfLargeOnesHoldsNoLargeArray() {
        respond(table, 500_000, 2_000);
        assertThat(initialBytes(table)).isEqualTo(500_000);

        assertThat(respond(table, ResponseWriter.SMALL_PIECES, 100).capacity()).isEqualTo(100);
        // 262,144 and one byte: stock would hold 524,288, so that 500,000 may stay
        assertThat(respond(table, ResponseWriter.SMALL_PIECES, 262_144).capacity())
                .isEqualTo(262_144);
        assertThat(respond(table, ResponseWriter.SMALL_PIECES, 262_145).capacity())
                .isEqualTo(500_000);
    }

    @Test
    void theFirstArrayIsNeverLargerThanTheOperatorAllows() {
        for (int max : new int[] {128, 4_096, 65_536, 262_144, 16 << 20}) {
            ResponseBufferSizes capped = new ResponseBufferSizes(max, ResponseBufferSizes.MOST_SPARE_BYTES);
            for (int size : new int[] {max - 1, max, max + 1, 2 * max}) {
                FakePartitions ofSize = FakePartitions.ofNewTable();
                for (int i = 0; i < 40; i++) {
                    DataOutputBuffer buffer = capped.startFor(ofSize);
                    assertThat(buffer.getData().length).isLessThanOrEqualTo(max);
                    if (size <= ResponseWriter.LARGEST) {
                        ResponseWriter.ONE_LARGE_VALUE.fill(buffer, size);
                    }
                    capped.finishFor(buffer, ofSize);
                }
            }
        }
    }

    @Test
    void theSpareArrayGrowsAsNeededAndNoFurtherThanItMay() {
        ResponseBufferSizes little = new ResponseBufferSizes(1 << 20, 64 << 10);
        for (int[] sizeAndNext : new int[][] {{16_384, 16_384}, {16_385, 32_768}, {400_000, 65_536}, {10, 65_536}}) {
            FakePartitions unknown = FakePartitions.ofNewTable();
            DataOutputBuffer buffer = little.startFor(unknown);
            ResponseWriter.ONE_LARGE_VALUE.fill(buffer, sizeAndNext[0]);
            checkContent(little.finishFor(buffer, unknown));
            DataOutputBuffer next = little.startFor(unknown);
            assertThat(next.getData()).hasSize(sizeAndNext[1]);
            little.finishFor(next, unknown);
        }
    }

    @Test
    void memoryIsBoundedHoweverManyTablesComeAndGo() {
        for (int i = 0; i < 100_000; i++) {
            respond(FakePartitions.ofNewTable(), ResponseWriter.ONE_LARGE_VALUE, 300);
            assertThat(sizes.tables.size()).isLessThanOrEqualTo(ResponseBufferSizes.MOST_TABLES);
        }
        respond(table, 10_000, 16);
        assertThat(initialBytes(table)).isEqualTo(10_000);
    }

    @Test
    void manyThreadsAtOnceLearnTheSameAndNeverMixTheirResponses() throws Exception {
        int threads = 8;
        FakePartitions mixed = FakePartitions.ofNewTable();
        ExecutorService executor = Executors.newFixedThreadPool(threads);
        try {
            List<Future<?>> done = new ArrayList<>();
            for (int t = 0; t < threads; t++) {
                int thread = t;
                done.add(executor.submit(() -> {
                    Random random = new Random(thread);
                    ByteBuffer[] kept = new ByteBuffer[64];
                    for (int i = 0; i < 20_000; i++) {
                        respond(table, ResponseWriter.ONE_LARGE_VALUE, 3_000);
                        ByteBuffer response =
                                respond(mixed, ResponseWriter.ONE_LARGE_VALUE, 100 + random.nextInt(9_000));
                        kept[i % kept.length] = response;
                        checkContent(kept[random.nextInt(Math.min(i + 1, kept.length))]);
                    }
                }));
            }
            for (Future<?> future : done) {
                future.get(30, TimeUnit.SECONDS);
            }
        } finally {
            executor.shutdownNow();
        }

        assertThat(initialBytes(table)).isEqualTo(3_000);
        assertThat(initialBytes(mixed)).isEqualTo(TableSizes.SPARE);
        assertThat(sizes.failure).hasValue(null);
    }

    @Test
    void nothingIsAllocatedButTheResponse() {
        FakePartitions mixed = FakePartitions.ofNewTable();
        Random random = new Random(1);
        respond(table, 3_000, 20_000);
        for (int i = 0; i < 20_000; i++) {
            respond(mixed, ResponseWriter.SMALL_PIECES, 128 + random.nextInt(20_000));
        }
        assertThat(initialBytes(table)).isEqualTo(3_000);
        assertThat(initialBytes(mixed)).isEqualTo(TableSizes.SPARE);

        // an exact array and its ByteBuffer, and the DataOutputBuffer
        long exact = allocatedBy(() -> {
            for (int i = 0; i < 10_000; i++) {
                DataOutputBuffer buffer = new DataOutputBuffer(3_000);
                ResponseWriter.SMALL_PIECES.fill(buffer, 3_000);
                sink = buffer;
                sink = buffer.buffer(false);
            }
        });
        assertThat(allocatedBy(() -> respond(table, 3_000, 10_000))).isLessThanOrEqualTo(exact);
        assertThat(allocatedBy(() -> respond(mixed, 3_000, 10_000))).isLessThanOrEqualTo(exact);
    }

    @Test
    void aTableThatCannotBeNamedIsServedAsStockDoesAndTheCauseIsReportedOnce() {
        List<String> reports = new ArrayList<>();
        PatchFailures.tell((patchId, error) -> reports.add(patchId + ": " + error.getMessage()));
        RuntimeException cause = new IllegalStateException("no metadata");
        UnfilteredPartitionIterator failing = new FailingPartitions(cause, 0);

        DataOutputBuffer buffer = sizes.startFor(failing);
        assertThat(buffer.getData()).hasSize(128);
        ResponseWriter.SMALL_PIECES.fill(buffer, 5_000);
        ByteBuffer response = sizes.finishFor(buffer, failing);

        checkContent(response);
        assertThat(response.remaining()).isEqualTo(5_000);
        assertThat(sizes.failure.get()).isSameAs(cause);

        sizes.startFor(new FailingPartitions(new IllegalStateException("a later one"), 0));
        assertThat(sizes.failure.get()).isSameAs(cause);
        assertThat(sizes.startFor(table).getData()).as("from now on as stock").hasSize(128);
        assertThat(reports).containsExactly("response_buffer_sizing: no metadata");
    }

    @Test
    void aMissingClassIsAFailureLikeAnyOther() {
        LinkageError cause = new NoSuchMethodError("metadata");

        assertThat(sizes.startFor(new FailingPartitions(cause, 0)).getData()).hasSize(128);
        assertThat(sizes.failure.get()).isSameAs(cause);
    }

    @Test
    void aFailureAtTheEndLosesNoResponse() {
        UnfilteredPartitionIterator failing = new FailingPartitions(new IllegalStateException("later"), 1);
        DataOutputBuffer running = sizes.startFor(failing);
        ResponseWriter.SMALL_PIECES.fill(running, 5_000);
        ByteBuffer response = sizes.finishFor(running, failing);
        assertThat(sizes.failure.get()).hasMessage("later");
        for (int i = 0; i < 100; i++) {
            respond(table, ResponseWriter.ONE_LARGE_VALUE, 6_000);
        }

        assertThat(response.remaining()).isEqualTo(5_000);
        checkContent(response);
    }

    @Test
    void aResponseWithinAResponseHasAnArrayOfItsOwn() {
        DataOutputBuffer outer = sizes.startFor(table);
        ResponseWriter.SMALL_PIECES.fill(outer, 2_000);
        ByteBuffer inner = respond(table, ResponseWriter.ONE_LARGE_VALUE, 3_000);
        ByteBuffer second = respond(table, ResponseWriter.ONE_LARGE_VALUE, 70_000);
        ByteBuffer outerResponse = sizes.finishFor(outer, table);
        respond(table, ResponseWriter.ONE_LARGE_VALUE, 4_000);

        assertThat(outerResponse.remaining()).isEqualTo(2_000);
        checkContent(outerResponse);
        checkContent(inner);
        checkContent(second);
    }

    @Test
    void theWovenCallsServeTheNodeAndCount() {
        long before = ResponseBufferSizes.responses();
        long saved = ResponseBufferSizes.savedBytes();
        for (int i = 0; i < 100; i++) {
            DataOutputBuffer buffer = ResponseBufferSizes.start(table);
            ResponseWriter.SMALL_PIECES.fill(buffer, 10_000);
            checkContent(ResponseBufferSizes.finish(buffer, table));
        }

        assertThat(ResponseBufferSizes.responses() - before).isEqualTo(100);
        // stock: 128 doubled to 16,384 makes 32,640
        assertThat(ResponseBufferSizes.savedBytes() - saved).isEqualTo(100 * (32_640 - 10_000));
    }

    @Test
    void whatDidNotFitIsCounted() {
        respond(table, 500_000, 112); // learnt one by one
        respond(table, ResponseWriter.SMALL_PIECES, 100);
        assertThat(sizes.outgrown.sum()).as("before the size was known").isEqualTo(16);
        respond(table, 100, 8_000);
        assertThat(sizes.trimmed.sum()).isPositive();
    }

    /** What is published can't be optimised away. */
    static volatile Object sink;

    private static long allocatedBy(Runnable task) {
        long before = THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
        task.run();
        return THREADS.getThreadAllocatedBytes(Thread.currentThread().getId()) - before;
    }

    private void respond(FakePartitions partitions, int size, int times) {
        for (int i = 0; i < times; i++) {
            sink = respond(partitions, ResponseWriter.SMALL_PIECES, size);
        }
    }

    private ByteBuffer respond(FakePartitions partitions, ResponseWriter writer, int size) {
        DataOutputBuffer buffer = sizes.startFor(partitions);
        writer.fill(buffer, size);
        return sizes.finishFor(buffer, partitions);
    }

    private int initialBytes(FakePartitions partitions) {
        return sizes.sizesOf(partitions).initialBytes();
    }

    private static void checkContent(ByteBuffer response) {
        for (int i = response.position(); i < response.limit(); i++) {
            if (response.get(i) != ResponseWriter.byteAt(i)) {
                throw new AssertionError("byte " + i + " of " + response);
            }
        }
    }

    /** Throws when asked for its table, after having answered {@code answers} times. */
    private static final class FailingPartitions implements UnfilteredPartitionIterator {
        private final FakePartitions answer = FakePartitions.ofNewTable();
        private final Throwable cause;
        private int answers;

        FailingPartitions(Throwable cause, int answers) {
            this.cause = cause;
            this.answers = answers;
        }

        @Override
        public TableMetadata metadata() {
            if (answers-- > 0) {
                return answer.metadata();
            }
            if (cause instanceof Error error) {
                throw error;
            }
            throw (RuntimeException) cause;
        }

        @Override
        public boolean hasNext() {
            return false;
        }

        @Override
        public UnfilteredRowIterator next() {
            throw new AssertionError();
        }

        @Override
        public void close() {}
    }
}
