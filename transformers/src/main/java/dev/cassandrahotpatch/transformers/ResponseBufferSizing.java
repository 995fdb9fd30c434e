/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.VarInsnNode;

/**
 * CASSANDRA-21285: starts a local read's response buffer at the size that this table's responses have had.
 *
 * <p>Stock code starts each at 128 bytes and doubles it, copying each time. The woven code asks
 * {@code ResponseBufferSizes} for the size to start with, and hands it the finished buffer to learn from.
 */
final class ResponseBufferSizing {
    private static final String BUFFER = "org/apache/cassandra/io/util/DataOutputBuffer";
    private static final String ITERATOR = "org/apache/cassandra/db/partitions/UnfilteredPartitionIterator";
    private static final String SIZES = "dev/cassandrahotpatch/runtime/ResponseBufferSizes";

    static final Patch PATCH = Patch.named(
                    "response_buffer_sizing",
                    "CASSANDRA-21285",
                    "starts response buffers at the size learnt from the table's earlier responses")
            .calls(SIZES.replace('/', '.'))
            .site(Site.of(
                            "org.apache.cassandra.db.ReadResponse$LocalDataResponse",
                            "build",
                            "(L" + ITERATOR + ";Lorg/apache/cassandra/db/filter/ColumnFilter;)Ljava/nio/ByteBuffer;")
                    .patch("ae6e74cba203088a217bec4658e9df98", "4.0 and 4.1")
                    .patch("73f20ff331eb543333780165679e9aa3", "5.0")
                    .notNeeded(
                            "22cfb3ff07e95a254eb622d125749b09",
                            "this Cassandra (6.0) sizes response buffers itself; tune it with"
                                    + " cassandra.data_response_buffer_initial_size_min and"
                                    + " cassandra.data_response_buffer_initial_size_max")
                    .rewrite(2, ResponseBufferSizing::sizeAndLearn))
            .build();

    private ResponseBufferSizing() {}

    private static int sizeAndLearn(MethodNode method) {
        int places = 0;
        for (AbstractInsnNode instruction : method.instructions.toArray()) {
            if (!(instruction instanceof MethodInsnNode) || !((MethodInsnNode) instruction).owner.equals(BUFFER)) {
                continue;
            }
            MethodInsnNode call = (MethodInsnNode) instruction;
            if (call.name.equals("<init>") && call.desc.equals("()V")) {
                method.instructions.insertBefore(call, callWithIterator("initialSize", "(L" + ITERATOR + ";)I"));
                call.desc = "(I)V";
                places++;
            } else if (call.name.equals("buffer") && call.desc.equals("()Ljava/nio/ByteBuffer;")) {
                method.instructions.insertBefore(
                        call, callWithIterator("finish", "(L" + BUFFER + ";L" + ITERATOR + ";)Ljava/nio/ByteBuffer;"));
                method.instructions.remove(call);
                places++;
            }
        }
        return places;
    }

    /** Calls {@code ResponseBufferSizes} with {@code build}'s first argument, the partitions that it serialises. */
    private static InsnList callWithIterator(String name, String descriptor) {
        InsnList instructions = new InsnList();
        instructions.add(new VarInsnNode(Opcodes.ALOAD, 0));
        instructions.add(new MethodInsnNode(Opcodes.INVOKESTATIC, SIZES, name, descriptor, false));
        return instructions;
    }
}
