/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.Map;
import java.util.stream.Collectors;

/** An agent for the tests that changes classes as they are loaded, as other operators' agents do. */
public final class ClassReplacer implements ClassFileTransformer {
    private static final String FOLDER = "replacements/";

    private ClassReplacer() {}

    /** The JVM calls this in the node. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        instrumentation.addTransformer(new ClassReplacer());
    }

    /**
     * The JVM option that replaces classes; makes the agent's jar in a folder.
     *
     * @param classFiles the new class files by their classes' binary names
     */
    static String option(Path folder, Map<String, byte[]> classFiles) throws IOException {
        Map<String, byte[]> replacements = classFiles.entrySet().stream()
                .collect(Collectors.toMap(entry -> FOLDER + TestJar.entry(entry.getKey()), Map.Entry::getValue));
        return "-javaagent:" + TestJar.agent(folder.resolve("replacer.jar"), ClassReplacer.class, replacements);
    }

    @Override
    public byte[] transform(
            ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] classFile) {
        try (InputStream in = ClassReplacer.class.getResourceAsStream("/" + FOLDER + name + ".class")) {
            return in == null ? null : in.readAllBytes();
        } catch (IOException e) {
            System.err.println("can't replace " + name + ": " + e);
            return null;
        }
    }
}
