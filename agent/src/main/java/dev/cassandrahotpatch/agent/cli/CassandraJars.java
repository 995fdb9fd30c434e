/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import dev.cassandrahotpatch.agent.CassandraDaemon;
import dev.cassandrahotpatch.transformers.ClassFiles;
import dev.cassandrahotpatch.transformers.Site;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * A Cassandra as it lies on disk: the jars of a home or of a lib folder, or a single jar. Only reads them: no class in them
 * is ever loaded. To be used by one thread.
 */
final class CassandraJars implements AutoCloseable {
    private static final String VERSION_FILE = "org/apache/cassandra/config/version.properties";
    private static final String VERSION_KEY = "CassandraVersion";

    private final Path target;
    private final List<ZipFile> jars = new ArrayList<>();

    private CassandraJars(Path target) {
        this.target = target;
    }

    /**
     * Opens what an operator named.
     *
     * @throws Failure if it can't be read, has no Cassandra, or has more than one
     */
    static CassandraJars open(Path target) throws Failure {
        CassandraJars jars = new CassandraJars(target);
        try {
            if (!Files.exists(target)) {
                throw Failure.usage("there is no " + target + ", or this user may not see it");
            }
            if (jars.isSingleJar()) {
                jars.add(target);
            } else {
                for (Path jar : jarsOf(target)) {
                    jars.add(jar);
                }
                jars.mustHaveOneCassandra();
            }
            return jars;
        } catch (Failure e) {
            jars.close();
            throw e;
        }
    }

    private static List<Path> jarsOf(Path target) throws Failure {
        List<Path> jars = new ArrayList<>();
        addJarsOf(target, jars);
        Path lib = target.resolve("lib");
        if (Files.isDirectory(
                lib)) { // a home; packages for Linux have Cassandra's own jar beside lib, the tarball in it
            addJarsOf(lib, jars);
        }
        if (jars.isEmpty()) {
            throw Failure.usage("there is no jar in " + target + " or in a lib folder in it");
        }
        Collections.sort(jars);
        return jars;
    }

    private static void addJarsOf(Path folder, List<Path> jars) throws Failure {
        try (DirectoryStream<Path> found = Files.newDirectoryStream(folder, "*.jar")) {
            found.forEach(jars::add);
        } catch (AccessDeniedException e) {
            throw Failure.unreachable("this user may not read the folder " + folder + ": run this as one who may");
        } catch (IOException e) {
            throw Failure.unreachable("the folder " + folder + " can't be read (" + e + ")");
        }
    }

    private void add(Path jar) throws Failure {
        if (!Files.isReadable(jar)) {
            throw Failure.unreachable(jar + " is not there, or this user may not read it: run this as one who may");
        }
        try {
            jars.add(new ZipFile(jar.toFile()));
        } catch (IOException e) {
            throw Failure.unreachable(jar + " is no readable jar (" + e.getMessage()
                    + "): compare it with the one that was delivered, and copy it anew");
        }
    }

    private void mustHaveOneCassandra() throws Failure {
        List<String> cassandras = new ArrayList<>();
        for (ZipFile jar : jars) {
            if (jar.getEntry(CassandraDaemon.RESOURCE) != null) {
                cassandras.add(new File(jar.getName()).getName());
            }
        }
        if (cassandras.isEmpty()) {
            throw Failure.usage(target + " is no Cassandra: none of its " + jars.size() + " jars has the class "
                    + CassandraDaemon.MAIN_CLASS);
        }
        if (cassandras.size() > 1) {
            throw Failure.usage(
                    target + " has " + cassandras.size() + " Cassandras, " + String.join(" and ", cassandras)
                            + ": which one a node would run is a matter of chance; take out all but one, or check one jar");
        }
    }

    /** Whether one jar was named, so that classes which are not there may be in others. */
    boolean isSingleJar() {
        return !Files.isDirectory(target);
    }

    /**
     * Reads a site's class from the first jar that has it, as a JVM would.
     *
     * @return the bytes, or null where no jar has the class
     */
    byte[] classFile(Site site) throws IOException {
        for (ZipFile jar : jars) {
            ZipEntry entry = jar.getEntry(site.resource());
            if (entry != null) {
                try (InputStream in = jar.getInputStream(entry)) {
                    return ClassFiles.read(in);
                }
            }
        }
        return null;
    }

    /** Cassandra's version, or null where there is none: the jar is one of a library, or it does not say. */
    String version() throws Failure {
        for (ZipFile jar : jars) {
            ZipEntry entry = jar.getEntry(VERSION_FILE);
            if (entry != null) {
                Properties version = new Properties();
                try (InputStream in = jar.getInputStream(entry)) {
                    version.load(in);
                } catch (IOException | IllegalArgumentException e) {
                    throw Failure.unreachable("the version in " + jar.getName() + " can't be read (" + e
                            + "): compare the jar with the one that was delivered, and copy it anew");
                }
                return version.getProperty(VERSION_KEY);
            }
        }
        return null;
    }

    @Override
    public String toString() {
        return target.toString();
    }

    @Override
    public void close() throws Failure {
        for (ZipFile jar : jars) {
            try {
                jar.close();
            } catch (IOException e) {
                throw Failure.unreachable(jar.getName() + " can't be closed (" + e + ")");
            }
        }
    }
}
