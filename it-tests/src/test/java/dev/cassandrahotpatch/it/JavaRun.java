/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * A JVM that was run to its end, and what came of it.
 *
 * @param exit its exit code
 * @param stdout what it wrote to standard output
 * @param stderr what it wrote to standard error
 */
record JavaRun(int exit, String stdout, String stderr) {
    private static final long LIMIT_SECONDS = 60;

    /** Runs this JVM's own Java. */
    static JavaRun of(String... arguments) throws IOException, InterruptedException {
        return of(JavaHome.own(), List.of(arguments));
    }

    /** Runs a Java; one that does not end within a minute, because a thread keeps it alive, is a failure. */
    static JavaRun of(Path javaHome, List<String> arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>();
        command.add(javaHome.resolve("bin/java").toString());
        command.addAll(arguments);
        Path stdout = Files.createTempFile("java-run", ".stdout");
        Path stderr = Files.createTempFile("java-run", ".stderr");
        try {
            Process process = new ProcessBuilder(command)
                    .redirectOutput(stdout.toFile())
                    .redirectError(stderr.toFile())
                    .start();
            if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
                throw new AssertionError("after " + LIMIT_SECONDS + " s still running: " + command);
            }
            return new JavaRun(process.exitValue(), text(stdout), text(stderr));
        } finally {
            Files.delete(stdout);
            Files.delete(stderr);
        }
    }

    private static String text(Path file) throws IOException {
        return new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1); // one character a byte: none is lost
    }
}
