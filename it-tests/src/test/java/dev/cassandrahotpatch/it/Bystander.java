/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * A program that has nothing to do with Cassandra and tells what there is in its JVM beside it: threads, and open
 * sockets.
 */
public final class Bystander {
    private Bystander() {}

    /** Prints the names of all threads and the number of open sockets, and ends. */
    public static void main(String[] arguments) throws IOException {
        List<String> threads = Thread.getAllStackTraces().keySet().stream()
                .map(Thread::getName)
                .sorted()
                .toList();
        System.out.println("threads: " + threads);
        System.out.println("sockets: " + sockets());
    }

    private static long sockets() throws IOException {
        Path descriptors = Path.of("/proc/self/fd");
        if (!Files.isDirectory(descriptors)) {
            return 0;
        }
        try (Stream<Path> open = Files.list(descriptors)) {
            return open.filter(Bystander::isSocket).count();
        }
    }

    private static boolean isSocket(Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).toString().startsWith("socket:");
        } catch (IOException closedMeanwhile) {
            return false;
        }
    }
}
