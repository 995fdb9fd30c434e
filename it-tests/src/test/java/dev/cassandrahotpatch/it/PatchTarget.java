/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.util.ArrayList;
import java.util.List;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/** The methods that the agent's patches rewrite, as the tests know them without asking the agent. */
enum PatchTarget {
    CACHE_CAPACITY(
            "cache_capacity",
            "com.github.benmanes.caffeine.cache.BoundedLocalCache$BoundedPolicy$BoundedEviction",
            "getMaximum"),
    CONNECTION_REQUEST_COUNTER(
            "connection_request_counter", "org.apache.cassandra.transport.ServerConnection", "<init>"),
    RESPONSE_BUFFER_SIZING("response_buffer_sizing", "org.apache.cassandra.db.ReadResponse$LocalDataResponse", "build");

    private final String patch;
    private final String className;
    private final String method;

    PatchTarget(String patch, String className, String method) {
        this.patch = patch;
        this.className = className;
        this.method = method;
    }

    static List<String> classNames() {
        return List.of(
                CACHE_CAPACITY.className, CONNECTION_REQUEST_COUNTER.className, RESPONSE_BUFFER_SIZING.className);
    }

    /** The id of the patch. */
    String patch() {
        return patch;
    }

    /** The binary name of the class that has the method. */
    String className() {
        return className;
    }

    /** The class with a method body that does the same and that nobody has seen before. */
    byte[] altered(CassandraRelease release) {
        ClassReader reader = new ClassReader(release.classFile(className));
        ClassWriter writer = new ClassWriter(reader, 0);
        reader.accept(
                new ClassVisitor(Opcodes.ASM9, writer) {
                    @Override
                    public MethodVisitor visitMethod(
                            int access, String name, String descriptor, String signature, String[] exceptions) {
                        MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
                        if (!name.equals(method)) {
                            return next;
                        }
                        return new MethodVisitor(Opcodes.ASM9, next) {
                            @Override
                            public void visitCode() {
                                super.visitCode();
                                super.visitInsn(Opcodes.NOP);
                                super.visitInsn(Opcodes.NOP);
                            }
                        };
                    }
                },
                0);
        return writer.toByteArray();
    }

    /** What the method calls, as {@code owner.name}, in a given version of the class. */
    List<String> calls(byte[] classFile) {
        List<String> calls = new ArrayList<>();
        new ClassReader(classFile)
                .accept(
                        new ClassVisitor(Opcodes.ASM9) {
                            @Override
                            public MethodVisitor visitMethod(
                                    int access, String name, String descriptor, String signature, String[] exceptions) {
                                if (!name.equals(method)) {
                                    return null;
                                }
                                return new MethodVisitor(Opcodes.ASM9) {
                                    @Override
                                    public void visitMethodInsn(
                                            int opcode, String owner, String name, String descriptor, boolean itf) {
                                        calls.add(owner.replace('/', '.') + "." + name);
                                    }
                                };
                            }
                        },
                        ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
        return calls;
    }
}
