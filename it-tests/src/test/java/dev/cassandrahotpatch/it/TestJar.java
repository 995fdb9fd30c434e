/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;

/** Jars that only tests have a use for. */
final class TestJar {
    private TestJar() {}

    /**
     * Writes a jar of classes.
     *
     * @param classFiles by their classes' binary names
     */
    static Path of(Path jar, Map<String, byte[]> classFiles) throws IOException {
        Map<String, byte[]> entries = new HashMap<>();
        classFiles.forEach((className, classFile) -> entries.put(entry(className), classFile));
        return write(jar, new Manifest(), entries);
    }

    /** Writes the jar of an agent that is one class. */
    static Path agent(Path jar, Class<?> agent) throws IOException {
        return agent(jar, agent, Map.of());
    }

    /**
     * Writes the jar of an agent that is one class and some resources.
     *
     * @param resources by their names in the jar
     */
    static Path agent(Path jar, Class<?> agent, Map<String, byte[]> resources) throws IOException {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().putValue("Premain-Class", agent.getName());
        manifest.getMainAttributes().putValue("Can-Retransform-Classes", "true");
        Map<String, byte[]> entries = new HashMap<>(resources);
        try (InputStream in = agent.getResourceAsStream("/" + entry(agent.getName()))) {
            entries.put(entry(agent.getName()), in.readAllBytes());
        }
        return write(jar, manifest, entries);
    }

    /** Where a class's file is in a jar. */
    static String entry(String className) {
        return className.replace('.', '/') + ".class";
    }

    private static Path write(Path jar, Manifest manifest, Map<String, byte[]> entries) throws IOException {
        try (OutputStream file = Files.newOutputStream(jar);
                JarOutputStream out = new JarOutputStream(file, manifest)) {
            for (Map.Entry<String, byte[]> entry : entries.entrySet()) {
                out.putNextEntry(new JarEntry(entry.getKey()));
                out.write(entry.getValue());
            }
        }
        return jar;
    }
}
