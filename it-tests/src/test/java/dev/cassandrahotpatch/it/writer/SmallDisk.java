/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** A file system of a few hundred MiB that can be filled; only root may mount one. */
final class SmallDisk implements AutoCloseable {
    private final Path folder;

    private SmallDisk(Path folder) {
        this.folder = folder;
    }

    /** Skips the test, and says so, where mounting is not allowed. */
    static void assumeAllowed(Path folder) throws IOException {
        boolean mounted = mountOn(folder.resolve("probe"), 1);
        if (!mounted) {
            System.out.println("[writer] skipped: a full disk needs a tmpfs, and this user may not mount one");
        }
        assumeTrue(mounted, "may not mount a tmpfs");
        new SmallDisk(folder.resolve("probe")).close();
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

    /** Writes a file until there is no room. */
    void fill() {
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
    }

    private static int run(String... command) throws IOException {
        Process process = new ProcessBuilder(List.of(command))
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        return process.onExit().join().exitValue();
    }
}
