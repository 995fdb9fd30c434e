/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.writer;

import dev.cassandrahotpatch.it.CassandraRelease;
import dev.cassandrahotpatch.transformers.Catalogue;
import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.Site;
import dev.cassandrahotpatch.transformers.Weaver;
import java.io.IOException;
import java.io.InputStream;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A release's classes in a class loader of their own: stock, or with {@code async_sstable_writer} woven in and its gate
 * open. The libraries come from one parent for each release, since some hold native code that a JVM loads once.
 */
final class WriterLoader extends URLClassLoader {
    private static final String RUNTIME = "dev.cassandrahotpatch.runtime.";
    private static final String SETTINGS = "cassandra.hotpatch.async_sstable_writer.";
    private static final Map<String, ClassLoader> LIBRARIES = new ConcurrentHashMap<>();

    private final Map<String, Site> sites = new HashMap<>();

    private WriterLoader(CassandraRelease release) {
        super(
                new URL[] {url(release.jars().get(0))},
                LIBRARIES.computeIfAbsent(release.version(), version -> libraries(release)));
    }

    /** The release as it is. */
    static WriterLoader stock(CassandraRelease release) {
        return started(new WriterLoader(release));
    }

    /** The release with the patch, under the given settings. */
    static WriterLoader woven(CassandraRelease release, Map<String, Long> settings) {
        return woven(release, settings, "");
    }

    /**
     * As {@link #woven(CassandraRelease, Map)}, but for one class that stays stock, as if another agent had changed it.
     *
     * @param stockClass its binary name
     */
    static WriterLoader woven(CassandraRelease release, Map<String, Long> settings, String stockClass) {
        Patch patch = Catalogue.patches().stream()
                .filter(candidate -> candidate.id().equals("async_sstable_writer"))
                .findFirst()
                .orElseThrow();
        WriterLoader loader = new WriterLoader(release);
        patch.sites().stream()
                .filter(site -> !site.className().equals(stockClass))
                .forEach(site -> loader.sites.put(site.className(), site));
        settings.forEach((name, value) -> System.setProperty(SETTINGS + name, value.toString()));
        try {
            loader.call(patch.gate(), "open");
            loader.counter("slotsInUse"); // has the settings read
            loader.load(RUNTIME + "ChunkThreads");
            loader.load(RUNTIME + "ChunkQueue");
        } finally {
            settings.keySet().forEach(name -> System.clearProperty(SETTINGS + name));
        }
        return started(loader);
    }

    /** One of the patch's counters. */
    long counter(String name) {
        return (Long) call(RUNTIME + "AsyncSSTableWriterCounters", name);
    }

    /** Calls a public static method without arguments. */
    Object call(String className, String method) {
        try {
            return load(className).getMethod(method).invoke(null);
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(e.getMessage(), e);
        }
    }

    Class<?> load(String className) {
        try {
            return Class.forName(className, true, this);
        } catch (ClassNotFoundException e) {
            throw new AssertionError(e);
        }
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        Site site = sites.get(name);
        if (site == null && !name.startsWith(RUNTIME)) {
            return super.findClass(name);
        }
        String resource = name.replace('.', '/') + ".class";
        try (InputStream in = site == null
                ? WriterLoader.class.getClassLoader().getResourceAsStream(resource)
                : findResource(resource).openStream()) {
            byte[] classFile = in.readAllBytes();
            if (site != null) {
                classFile = Weaver.weave(classFile, List.of(site), Set.of()).classFile();
            }
            return defineClass(name, classFile, 0, classFile.length);
        } catch (IOException e) {
            throw new ClassNotFoundException(name, e);
        }
    }

    private static WriterLoader started(WriterLoader loader) {
        loader.call("org.apache.cassandra.config.DatabaseDescriptor", "clientInitialization");
        return loader;
    }

    /** Without logback, which would log all of Cassandra's debugging to this test's output. */
    private static ClassLoader libraries(CassandraRelease release) {
        URL[] urls = release.jars().stream()
                .skip(1)
                .filter(jar -> !jar.getFileName().toString().startsWith("logback"))
                .map(WriterLoader::url)
                .toArray(URL[]::new);
        return new URLClassLoader(urls, ClassLoader.getPlatformClassLoader());
    }

    private static URL url(Path jar) {
        try {
            return jar.toUri().toURL();
        } catch (MalformedURLException e) {
            throw new AssertionError(e);
        }
    }
}
