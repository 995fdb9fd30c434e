/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** The Javas of this machine. */
final class JavaHome {
    private static final Path DISTRIBUTION = Path.of("/usr/lib/jvm");

    private JavaHome() {}

    /** The Java that runs the tests. */
    static Path own() {
        return Path.of(System.getProperty("java.home"));
    }

    /**
     * The Java given by {@code -Dit.java<version>.home}, the one that runs the tests, or one where Linux distributions put
     * them; if there is none, the test is skipped, and says so.
     */
    static Path of(int version) throws IOException {
        String given = System.getProperty("it.java" + version + ".home", "");
        if (!given.isEmpty()) {
            return Path.of(given);
        }
        if (Runtime.version().feature() == version) {
            return own();
        }
        if (Files.isDirectory(DISTRIBUTION)) {
            try (Stream<Path> homes = Files.list(DISTRIBUTION)) {
                for (Path home : homes.sorted().toList()) {
                    if (home.getFileName().toString().matches("(java|temurin)-" + version + "-.*")
                            && Files.isExecutable(home.resolve("bin/java"))) {
                        return home;
                    }
                }
            }
        }
        String reason = "skipped on Java " + version + ": give it with -Dit.java" + version + ".home=<its folder>";
        System.out.println("[it] " + reason);
        return abort(reason);
    }
}
