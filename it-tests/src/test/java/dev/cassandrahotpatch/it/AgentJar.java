/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Enumeration;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/** The jar under test, as the build has made it. */
public final class AgentJar {
    private AgentJar() {}

    /** Where the build has put it. */
    public static Path path() {
        Path jar = Path.of(System.getProperty("agent.jar")).toAbsolutePath().normalize();
        if (!Files.isRegularFile(jar)) {
            throw new IllegalStateException(jar + " is not there: build it with mvn package");
        }
        return jar;
    }

    /** The JVM option that an operator adds. */
    static String option() {
        return "-javaagent:" + path();
    }

    static String option(String arguments) {
        return option() + "=" + arguments;
    }

    /** Copies the jar but for one entry, which must be in it. */
    static Path without(String entry, Path copy) throws IOException {
        boolean found = false;
        try (ZipFile jar = new ZipFile(path().toFile());
                OutputStream file = Files.newOutputStream(copy);
                ZipOutputStream out = new ZipOutputStream(file)) {
            for (Enumeration<? extends ZipEntry> entries = jar.entries(); entries.hasMoreElements(); ) {
                ZipEntry next = entries.nextElement();
                if (next.getName().equals(entry)) {
                    found = true;
                    continue;
                }
                out.putNextEntry(new ZipEntry(next.getName()));
                jar.getInputStream(next).transferTo(out);
            }
        }
        if (!found) {
            throw new IllegalArgumentException(path() + " has no " + entry);
        }
        return copy;
    }
}
