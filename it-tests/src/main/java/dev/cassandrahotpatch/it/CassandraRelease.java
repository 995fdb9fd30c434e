/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * A released Cassandra, as the jars that Maven Central serves. Immutable and thread-safe; each release is resolved once in
 * a JVM.
 */
public final class CassandraRelease {
    private static final MavenRepositories REPOSITORIES = new MavenRepositories();
    private static final Map<String, CassandraRelease> RESOLVED = new ConcurrentHashMap<>();

    private final String version;
    private final List<Path> jars;

    private CassandraRelease(String version) {
        this.version = version;
        this.jars = REPOSITORIES.runtimeJars("org.apache.cassandra:cassandra-all:" + version);
    }

    /**
     * Resolves a release with all that it needs to run.
     *
     * @param version as Maven Central has it: {@code 4.1.10}, {@code 6.0-alpha2}
     */
    public static CassandraRelease of(String version) {
        return RESOLVED.computeIfAbsent(version, CassandraRelease::new);
    }

    /** The versions of all releases that our patches are for and that Maven Central serves, oldest first. */
    public static List<String> served() {
        return Stream.of(line("4.0.", 19), line("4.1.", 10), line("5.0.", 9), Stream.of("6.0-alpha2"))
                .flatMap(versions -> versions)
                .toList();
    }

    /** The jar of something that operators run beside Cassandra, by its {@code group:artifact:version}. */
    public static Path artifact(String coordinates) {
        return REPOSITORIES.runtimeJars(coordinates).get(0);
    }

    private static Stream<String> line(String prefix, int newest) {
        return IntStream.rangeClosed(0, newest).mapToObj(patch -> prefix + patch);
    }

    /** The version that this was resolved for. */
    public String version() {
        return version;
    }

    /** Cassandra's own jar, and after it those of what it depends on. */
    public List<Path> jars() {
        return jars;
    }

    /**
     * One jar of the release.
     *
     * @param artifact its name without the version: {@code jamm}
     */
    public Path jar(String artifact) {
        Pattern name = Pattern.compile(Pattern.quote(artifact) + "-\\d.*\\.jar");
        return jars.stream()
                .filter(jar -> name.matcher(jar.getFileName().toString()).matches())
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("Cassandra " + version + " has no " + artifact));
    }

    /**
     * Reads a class file from the first jar that has it, which is where a JVM would find the class.
     *
     * @param className the class's binary name
     */
    public byte[] classFile(String className) {
        byte[] classFile = find(className);
        if (classFile == null) {
            throw new IllegalArgumentException("Cassandra " + version + " has no class " + className);
        }
        return classFile;
    }

    /** Whether one of the jars has a class of this binary name. */
    public boolean hasClass(String className) {
        return find(className) != null;
    }

    private byte[] find(String className) {
        String resource = className.replace('.', '/') + ".class";
        try {
            for (Path jar : jars) {
                try (ZipFile zip = new ZipFile(jar.toFile())) {
                    ZipEntry entry = zip.getEntry(resource);
                    if (entry != null) {
                        try (InputStream in = zip.getInputStream(entry)) {
                            return in.readAllBytes();
                        }
                    }
                }
            }
            return null;
        } catch (IOException e) {
            throw new UncheckedIOException("can't read the jars of Cassandra " + version, e);
        }
    }

    @Override
    public String toString() {
        return "Cassandra " + version;
    }
}
