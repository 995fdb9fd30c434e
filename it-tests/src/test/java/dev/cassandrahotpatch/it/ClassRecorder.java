/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.List;

/**
 * An agent for the tests that changes nothing: behind ours on the command line, it writes down what the JVM is given for
 * some classes. So what a patch's state claims can be held against what runs.
 */
public final class ClassRecorder implements ClassFileTransformer {
    private final Path folder;
    private final List<String> names;

    private ClassRecorder(List<String> folderAndNames) {
        this.folder = Path.of(folderAndNames.get(0));
        this.names = folderAndNames.subList(1, folderAndNames.size());
    }

    /** The JVM calls this in the node; the arguments are those that {@link #option} makes. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        // only transformers that can retransform are asked in the order of the command line
        instrumentation.addTransformer(new ClassRecorder(List.of(arguments.split(",", -1))), true);
    }

    /** The JVM option that records classes, given by their binary names, into a folder; makes the agent's jar there. */
    static String option(Path folder, List<String> classNames) throws IOException {
        Path jar = TestJar.agent(folder.resolve("recorder.jar"), ClassRecorder.class);
        return "-javaagent:" + jar + "=" + folder + "," + String.join(",", classNames);
    }

    /** What the JVM was given for a class. */
    static byte[] recorded(Path folder, String className) throws IOException {
        return Files.readAllBytes(folder.resolve(className));
    }

    @Override
    public byte[] transform(
            ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] classFile) {
        String className = name == null ? "" : name.replace('/', '.');
        if (names.contains(className)) {
            try {
                Files.write(folder.resolve(className), classFile);
            } catch (IOException e) {
                System.err.println("can't record " + className + ": " + e);
            }
        }
        return null;
    }
}
