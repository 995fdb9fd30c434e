/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import dev.cassandrahotpatch.it.writer.DataFileWriter.Flushed;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * A random sequence of what Cassandra does with a data file's writer, the same for the same seed. Running it on a stock and
 * on a patched writer must leave the same files, and answers that are the same where they must be.
 */
final class WriterProgram {
    private static final List<String> COMPRESSORS =
            List.of("LZ4Compressor", "ZstdCompressor", "SnappyCompressor", "DeflateCompressor", "NoopCompressor");

    /** How a program ends. */
    enum End {
        FINISH,
        PREPARE_AND_COMMIT,
        ABORT
    }

    /**
     * What an operation answered.
     *
     * @param exact what must be the same for stock and patched
     * @param estimate what may differ by what is in flight, or -1
     * @param flushed how many flushes the listener had been told of
     */
    record Answer(String operation, String exact, long estimate, int flushed) {}

    /** One run: all answers, and what the listener was told. */
    record Run(List<Answer> answers, List<Flushed> flushed) {}

    @FunctionalInterface
    private interface Operation {
        Answer on(DataFileWriter writer, Deque<Object> marks) throws IOException;
    }

    private final long seed;
    private final boolean direct;
    private final Random random;
    private final Map<String, String> compression = new HashMap<>();
    private final int chunk;
    private final boolean listening;
    private final End end;
    private final List<Operation> operations = new ArrayList<>();
    private final StringBuilder description = new StringBuilder();

    WriterProgram(long seed, boolean direct) {
        this.seed = seed;
        this.direct = direct;
        this.random = new Random(seed);
        int chunkKib = 4 << random.nextInt(7);
        this.chunk = chunkKib << 10;
        compression.put("class", COMPRESSORS.get(random.nextInt(COMPRESSORS.size())));
        compression.put("chunk_length_in_kb", Integer.toString(chunkKib));
        if (random.nextInt(3) == 0) {
            compression.put("min_compress_ratio", random.nextBoolean() ? "1.1" : "2");
        }
        this.listening = random.nextInt(8) > 0;
        this.end = random.nextInt(8) == 0 ? End.ABORT : random.nextBoolean() ? End.FINISH : End.PREPARE_AND_COMMIT;
        // small chunks make many, so that programs of all chunk lengths write about as much
        int chunks = Math.min(300, (random.nextInt(24) + 1) * Math.max(1, (32 << 10) / chunk));
        boolean calm = random.nextBoolean();
        for (long written = 0; written < (long) chunks * chunk; ) {
            written += random.nextInt(calm ? 60 : 6) > 0 ? addWrite() : addOther();
        }
    }

    /** Bytes of a chunk. */
    int chunk() {
        return chunk;
    }

    End end() {
        return end;
    }

    /** Runs the program on a writer for files in the given folder. */
    Run run(WriterLoader loader, Path folder) {
        DataFileWriter writer = new DataFileWriter(loader, folder, compression, direct);
        List<Answer> answers = new ArrayList<>();
        try {
            if (listening) {
                writer.listen();
            }
            Deque<Object> marks = new ArrayDeque<>();
            for (Operation operation : operations) {
                answers.add(operation.on(writer, marks));
            }
            switch (end) {
                case FINISH -> writer.call("finish");
                case PREPARE_AND_COMMIT -> {
                    writer.call("prepareToCommit");
                    answers.add(exact(writer, "commit", writer.call("commit", new Object[] {null})));
                }
                case ABORT -> answers.add(exact(writer, "abort", writer.abort()));
                default -> throw new AssertionError(end);
            }
        } catch (Throwable e) {
            e.addSuppressed(new AssertionError("in " + this, writer.abort()));
            throw new AssertionError(e);
        }
        return new Run(answers, writer.flushed());
    }

    private long addWrite() {
        int length = random.nextInt(5) == 0 ? random.nextInt(3 * chunk) : random.nextInt(Math.max(2, chunk / 4));
        byte[] bytes = bytes(length);
        switch (random.nextInt(6)) {
            case 0, 1 ->
                add("write " + length, (writer, marks) -> {
                    writer.output().write(bytes);
                    return done(writer, "write");
                });
            case 2 ->
                add("write heap buffer " + length, (writer, marks) -> {
                    writer.write(ByteBuffer.wrap(bytes));
                    return done(writer, "write buffer");
                });
            case 3 ->
                add("write direct buffer " + length, (writer, marks) -> {
                    writer.write(ByteBuffer.allocateDirect(length).put(bytes).flip());
                    return done(writer, "write direct buffer");
                });
            case 4 ->
                add("write part " + length, (writer, marks) -> {
                    writer.output().write(bytes, length / 3, length / 2);
                    return done(writer, "write part");
                });
            default ->
                add("write values", (writer, marks) -> {
                    for (int i = 0; i + 3 < bytes.length && i < 400; i += 3) {
                        writer.output().writeLong(bytes[i] * 0x123456789abL);
                        writer.output().writeInt(bytes[i + 1] << 20);
                        writer.output().writeShort(bytes[i + 2]);
                        writer.output().writeByte(i);
                        writer.output().writeBoolean(bytes[i] > 0);
                        writer.output().writeDouble(bytes[i]);
                        writer.output().writeUTF("row " + bytes[i]);
                        writer.output().write(i);
                    }
                    return done(writer, "write values");
                });
        }
        return length;
    }

    private long addOther() {
        int operation = random.nextInt(direct ? 9 : 15);
        double fraction = random.nextDouble();
        switch (operation) {
            case 0 -> addExact("position");
            case 1 -> addExact("getOnDiskFilePointer");
            case 2, 3, 4 ->
                add(
                        "estimate",
                        (writer, marks) -> new Answer(
                                "estimate",
                                "",
                                (Long) writer.call("getEstimatedOnDiskBytesWritten"),
                                writer.flushed().size()));
            case 5 -> addExact("length");
            case 6 ->
                add("open early", (writer, marks) -> {
                    long flushedAtLeast = writer.position() - chunk;
                    return flushedAtLeast <= 0
                            ? done(writer, "too early")
                            : exact(writer, "open early", writer.open((long) (fraction * flushedAtLeast) + 1));
                });
            case 7 ->
                add(
                        "open",
                        (writer, marks) -> writer.position() <= chunk
                                ? done(writer, "too early")
                                : exact(writer, "open", writer.open(0)));
            case 8 ->
                add("pause", (writer, marks) -> {
                    try {
                        Thread.sleep((long) (fraction * 4));
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                    return done(writer, "pause");
                });
            case 9, 10, 11 ->
                add("mark", (writer, marks) -> {
                    marks.push(writer.call("mark"));
                    return done(writer, "mark");
                });
            case 12, 13 ->
                add("reset", (writer, marks) -> {
                    if (!marks.isEmpty()) {
                        writer.call("resetAndTruncate", fraction < 0.7 ? marks.peek() : marks.pop());
                    }
                    return done(writer, "reset");
                });
            default -> addRare(fraction);
        }
        return 0;
    }

    /** What ends a chunk early: stock only does so at the end of a file, but must do the same in its middle. */
    private void addRare(double fraction) {
        if (fraction < 0.3) {
            add("sync", (writer, marks) -> {
                marks.clear(); // they count in full chunks
                writer.call("sync");
                return done(writer, "sync");
            });
        } else if (fraction < 0.6) {
            add("pad", (writer, marks) -> {
                if (writer.has("padToPageBoundary")) {
                    marks.clear();
                    writer.call("padToPageBoundary");
                }
                return done(writer, "pad");
            });
        } else {
            add("truncate", (writer, marks) -> {
                writer.call("truncate", (Long) writer.call("getOnDiskFilePointer"));
                return done(writer, "truncate");
            });
        }
    }

    private void addExact(String method) {
        add(method, (writer, marks) -> exact(writer, method, writer.call(method)));
    }

    private void add(String name, Operation operation) {
        operations.add(operation);
        description.append(description.isEmpty() ? "" : ", ").append(name);
    }

    private static Answer done(DataFileWriter writer, String operation) {
        return exact(writer, operation, "");
    }

    private static Answer exact(DataFileWriter writer, String operation, Object answer) {
        return new Answer(
                operation,
                answer + " at " + writer.call("position"),
                -1,
                writer.flushed().size());
    }

    /** Zeroes, text, noise, or some of each. */
    private byte[] bytes(int length) {
        byte[] bytes = new byte[length];
        switch (random.nextInt(4)) {
            case 0 -> {}
            case 1 -> random.nextBytes(bytes);
            case 2 -> {
                for (int i = 0; i < length; i++) {
                    bytes[i] = (byte) ('a' + random.nextInt(4));
                }
            }
            default -> {
                for (int i = 0; i < length; i++) {
                    bytes[i] = (byte) (i % 100 < 60 ? i % 7 : random.nextInt());
                }
            }
        }
        return bytes;
    }

    @Override
    public String toString() {
        String operationsText = description.length() > 2000 ? description.substring(0, 2000) + "..." : "" + description;
        return "program " + seed + (direct ? " (direct)" : "") + " " + compression
                + (listening ? "" : " without listener") + ", " + end + ": " + operationsText;
    }
}
