/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** A file system of a few hundred MiB that can be filled; only root may mount one. */
final class SmallDisk implements AutoCloseable {
    private static final int PAGE_BYTES = 4096;
    private static final int CHECKSUM_BYTES = 4;
    private static final int FILL_SECONDS = 30;
    private static final int SETTLE_MILLIS = 20;

    /** What is mounted; written by the threads that use disks, read by the shutdown hook. */
    private static final Set<Path> MOUNTED = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(SmallDisk::unmountAll, "unmount-disks"));
    }

    private final Path folder;

    private SmallDisk(Path folder) {
        this.folder = folder;
        MOUNTED.add(folder);
    }

    /** When this JVM is told to end: nodes that are being killed may still use the disks, so these go as soon as they don't. */
    private static void unmountAll() {
        try {
            for (Path folder : MOUNTED) {
                run("umount", "--lazy", folder.toString());
            }
        } catch (IOException e) {
            System.err.println("[writer] " + MOUNTED + " stay mounted: " + e);
        }
    }

    /** Whether this user may mount one; where {@code -Dwriter.disks=required} is given, not being allowed is an error. */
    static boolean allowed(Path folder) throws IOException {
        Path probe = folder.resolve("probe");
        boolean mounted = mountOn(probe, 1);
        if (mounted) {
            new SmallDisk(probe).close();
        } else if ("required".equals(System.getProperty("writer.disks"))) {
            throw new IOException("a full disk needs a tmpfs, and this user may not mount one");
        }
        return mounted;
    }

    /** Skips the test, and says so, where mounting is not allowed. */
    static void assumeAllowed(Path folder) throws IOException {
        if (!allowed(folder)) {
            System.out.println("[writer] skipped: a full disk needs a tmpfs, and this user may not mount one");
            assumeTrue(false, "may not mount a tmpfs");
        }
    }

    /** Mounts one on a new folder. */
    static SmallDisk mount(Path folder, int mebibytes) throws IOException {
        if (!mountOn(folder, mebibytes)) {
            throw new IOException("can't mount a tmpfs on " + folder);
        }
        return new SmallDisk(folder);
    }

    private static boolean mountOn(Path folder, int mebibytes) throws IOException {
        Files.createDirectories(folder);
        return run("mount", "-t", "tmpfs", "-o", "size=" + mebibytes + "m", "tmpfs", folder.toString()) == 0;
    }

    /**
     * Leaves no room for more than the rest of the last page of the newest data file that a node is writing for a table.
     * The next chunk goes there in part, and what comes behind it has no room at all: where a file ends at the end of a page,
     * the chunk itself would fail, which is another error to Cassandra.
     */
    void fillUnder(WriterNode node, String table) throws InterruptedException {
        long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(FILL_SECONDS);
        while (System.nanoTime() < limit) {
            if (!isMidPage(node.newestDataFile(table))) {
                TimeUnit.MILLISECONDS.sleep(1);
                continue;
            }
            node.pause();
            try {
                TimeUnit.MILLISECONDS.sleep(SETTLE_MILLIS); // a write under way may still end
                if (isMidPage(node.newestDataFile(table))) {
                    fill();
                    return;
                }
            } finally {
                node.resume();
            }
        }
        throw new AssertionError(node + " has not written a part of a page of " + table + " in " + FILL_SECONDS + " s");
    }

    /** Whether a file ends in a page that has room for a checksum, at least, and for less than a page. */
    private static boolean isMidPage(long size) {
        return size % PAGE_BYTES > 0 && size % PAGE_BYTES < PAGE_BYTES - CHECKSUM_BYTES;
    }

    private void fill() {
        try (OutputStream out = Files.newOutputStream(ballast())) {
            for (int bytes = 4 << 20; bytes >= 1 << 12; bytes /= 4) {
                fillWith(out, new byte[bytes]);
            }
        } catch (IOException full) {
            // as wanted
        }
    }

    private static void fillWith(OutputStream out, byte[] block) {
        try {
            while (true) {
                out.write(block);
            }
        } catch (IOException full) {
            // as wanted: a smaller block may still have room
        }
    }

    /** Deletes what {@link #fill()} has written. */
    void free() throws IOException {
        Files.deleteIfExists(ballast());
    }

    private Path ballast() {
        return folder.resolve("ballast");
    }

    @Override
    public void close() throws IOException {
        if (run("umount", folder.toString()) != 0) {
            throw new IOException("can't unmount " + folder);
        }
        MOUNTED.remove(folder);
    }

    private static int run(String... command) throws IOException {
        Process process = new ProcessBuilder(List.of(command))
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        return process.onExit().join().exitValue();
    }
}
