/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.MethodNode;

/** The bytes of real classes on the test's class path, and small changes to them. */
final class ClassBytes {
    private ClassBytes() {}

    static byte[] of(String className) {
        try (InputStream in =
                ClassBytes.class.getClassLoader().getResourceAsStream(className.replace('.', '/') + ".class")) {
            return in.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static ClassNode parse(byte[] classFile, int options) {
        ClassNode node = new ClassNode();
        new ClassReader(classFile).accept(node, options);
        return node;
    }

    static MethodNode method(byte[] classFile, String name) {
        return parse(classFile, 0).methods.stream()
                .filter(method -> method.name.equals(name))
                .findFirst()
                .orElseThrow();
    }

    /** Puts an instruction that does nothing at the start of a method. */
    static byte[] withNopIn(byte[] classFile, String methodName) {
        ClassReader reader = new ClassReader(classFile);
        ClassWriter writer = new ClassWriter(reader, 0);
        reader.accept(
                new ClassVisitor(Opcodes.ASM9, writer) {
                    @Override
                    public MethodVisitor visitMethod(
                            int access, String name, String descriptor, String signature, String[] exceptions) {
                        MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
                        return !name.equals(methodName)
                                ? next
                                : new MethodVisitor(Opcodes.ASM9, next) {
                                    @Override
                                    public void visitCode() {
                                        super.visitCode();
                                        super.visitInsn(Opcodes.NOP);
                                    }
                                };
                    }
                },
                0);
        return writer.toByteArray();
    }
}
