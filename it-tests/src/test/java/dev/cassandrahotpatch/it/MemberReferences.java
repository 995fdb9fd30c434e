/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;

/**
 * Looks up what a class of ours calls and reads of Cassandra. The JVM does so only when an instruction is first run, which
 * on a hot path would be too late.
 */
final class MemberReferences {
    private MemberReferences() {}

    /** The fields and methods of Cassandra that {@code className} names and the loader's Cassandra does not have. */
    static Set<String> missing(String className, ClassLoader loader) throws IOException {
        Set<String> missing = new TreeSet<>();
        for (MethodNode method : parse(className.replace('.', '/'), loader).methods) {
            for (AbstractInsnNode instruction : method.instructions) {
                if (instruction instanceof MethodInsnNode call
                        && isCassandras(call.owner)
                        && !has(call.owner, call.name + call.desc, loader)) {
                    missing.add(call.owner + "." + call.name + call.desc);
                } else if (instruction instanceof FieldInsnNode field
                        && isCassandras(field.owner)
                        && !has(field.owner, field.name + " " + field.desc, loader)) {
                    missing.add(field.owner + "." + field.name + " " + field.desc);
                }
            }
        }
        return missing;
    }

    private static boolean isCassandras(String owner) {
        return owner.startsWith("org/apache/cassandra/");
    }

    private static boolean has(String owner, String member, ClassLoader loader) throws IOException {
        ClassNode node = parse(owner, loader);
        if (node.methods.stream().anyMatch(method -> member.equals(method.name + method.desc))
                || node.fields.stream().anyMatch(field -> member.equals(field.name + " " + field.desc))) {
            return true;
        }
        List<String> parents = new ArrayList<>(node.interfaces);
        if (node.superName != null) {
            parents.add(node.superName);
        }
        for (String parent : parents) {
            if (has(parent, member, loader)) {
                return true;
            }
        }
        return false;
    }

    private static ClassNode parse(String internalName, ClassLoader loader) throws IOException {
        try (InputStream in = loader.getResourceAsStream(internalName + ".class")) {
            if (in == null) {
                throw new IOException("no class " + internalName);
            }
            ClassNode node = new ClassNode();
            new ClassReader(in).accept(node, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
            return node;
        }
    }
}
