/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;

/**
 * The files of one SSTable.
 *
 * @param components the files by what they are: {@code Data.db}
 */
record SSTableFiles(SortedMap<String, Path> components) {
    /** The first says which node has written the SSTable; the second lists the others in the order of a hash table. */
    private static final Set<String> NEVER_THE_SAME = Set.of("Statistics.db", "TOC.txt");

    private static final int CHECKSUM_BYTES = 4;

    /** The SSTables in a folder, oldest first; empty while there is a transaction's log. */
    static Optional<List<SSTableFiles>> settled(Path folder) {
        SortedMap<Integer, SortedMap<String, Path>> sstables = new TreeMap<>();
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                if (file.getFileName().toString().contains("_txn_")) {
                    return Optional.empty();
                }
                String[] parts = file.getFileName().toString().split("-", 4); // version, number, format, component
                sstables.computeIfAbsent(Integer.valueOf(parts[1]), number -> new TreeMap<>())
                        .put(parts[3], file);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return Optional.of(sstables.values().stream().map(SSTableFiles::new).toList());
    }

    /** The components whose bytes depend on nothing but the rows and the table's options. */
    List<String> deterministic() {
        return components.keySet().stream()
                .filter(component -> !NEVER_THE_SAME.contains(component))
                .toList();
    }

    /** What is done to each SSTable of a table is done in no certain order, so they are matched by their digests. */
    static void assertSame(String table, List<SSTableFiles> expected, List<SSTableFiles> actual) {
        List<SSTableFiles> ofStock = byDigest(expected);
        List<SSTableFiles> ofPatched = byDigest(actual);
        assertThat(ofPatched).as("SSTables of %s", table).hasSameSizeAs(ofStock);
        for (int i = 0; i < ofStock.size(); i++) {
            assertThat(ofStock.get(i).differences(ofPatched.get(i)))
                    .as("differences in %s", table)
                    .isEmpty();
        }
    }

    private static List<SSTableFiles> byDigest(List<SSTableFiles> sstables) {
        return sstables.stream()
                .sorted(Comparator.comparing(SSTableFiles::digest))
                .toList();
    }

    /** Where two SSTables' components differ, or which only one has; empty if they are equal. */
    List<String> differences(SSTableFiles other) {
        if (!components.keySet().equals(other.components.keySet())) {
            return List.of(components.keySet() + " and " + other.components.keySet());
        }
        List<String> differences = new ArrayList<>();
        for (String component : deterministic()) {
            try {
                long at = Files.mismatch(components.get(component), other.components.get(component));
                if (at >= 0) {
                    differences.add(
                            components.get(component) + " and " + other.components.get(component) + " at byte " + at);
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return differences;
    }

    /** The checksum of {@code Data.db} that was written beside it. */
    private String digest() {
        try {
            return Files.readString(components.get("Digest.crc32"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    long size(String component) {
        try {
            return Files.size(components.get(component));
        } catch (NoSuchFileException absent) {
            return 0;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Writes what is in {@code Data.db}, which must be compressed by {@code DeflateCompressor}, as it was before. */
    void inflateTo(OutputStream out) throws IOException, DataFormatException {
        byte[] data = Files.readAllBytes(components.get("Data.db"));
        try (DataInputStream info = new DataInputStream(Files.newInputStream(components.get("CompressionInfo.db")))) {
            info.readUTF(); // the compressor
            for (int option = info.readInt(); option > 0; option--) {
                info.readUTF();
                info.readUTF();
            }
            byte[] chunk = new byte[info.readInt()];
            info.readInt(); // the most that a compressed chunk may have: no limit by default
            info.readLong(); // the uncompressed length
            long[] offsets = new long[info.readInt() + 1];
            for (int i = 0; i < offsets.length - 1; i++) {
                offsets[i] = info.readLong();
            }
            offsets[offsets.length - 1] = data.length;
            Inflater inflater = new Inflater();
            for (int i = 0; i < offsets.length - 1; i++) {
                int length = (int) (offsets[i + 1] - offsets[i]) - CHECKSUM_BYTES;
                inflater.reset();
                inflater.setInput(ByteBuffer.wrap(data, (int) offsets[i], length));
                out.write(chunk, 0, inflater.inflate(chunk));
            }
            inflater.end();
        }
    }
}
