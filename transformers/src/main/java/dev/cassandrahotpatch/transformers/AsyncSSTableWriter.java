/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import java.util.ArrayList;
import org.objectweb.asm.Label;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.FieldNode;
import org.objectweb.asm.tree.FrameNode;
import org.objectweb.asm.tree.IincInsnNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.LocalVariableNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.VarInsnNode;

/**
 * CASSANDRA-21655: compresses, checksums and writes the chunks of compressed data files on a thread of its own.
 *
 * <p>The release's own {@code flushData} stays the only code that knows the file's format: its instructions move, unchanged
 * but for taking the chunk as an argument, into {@code hotpatchFlushData(ByteBuffer)}, which stock's {@code flushData} now
 * calls with its {@code buffer}, and which a writer thread calls with the chunks that {@code doFlush} has handed over. All
 * else that reads or moves what {@code flushData} owns first waits until everything handed over is written. That list is
 * complete only for classes that we have read, so the sites are whole classes: any other field or method anywhere in them is
 * a refusal.
 */
final class AsyncSSTableWriter {
    private static final String IO = "org/apache/cassandra/io/";
    private static final String BUFFERED = IO + "util/BufferedDataOutputStreamPlus";
    private static final String SEQUENTIAL = IO + "util/SequentialWriter";
    private static final String COMPRESSED = IO + "compress/CompressedSequentialWriter";
    private static final String DIRECT = IO + "compress/DirectCompressedSequentialWriter";
    private static final String BYTE_BUFFER = "java/nio/ByteBuffer";

    private static final String RUNTIME = "dev/cassandrahotpatch/runtime/";
    private static final String ASYNC = RUNTIME + "AsyncSSTableWriter";
    private static final String FILE = RUNTIME + "ChunkedFile";
    private static final String QUEUE = RUNTIME + "ChunkQueue";

    static final Patch PATCH = Patch.named(
                    "async_sstable_writer",
                    "CASSANDRA-21655",
                    "compresses and writes SSTable chunks off the compaction thread")
            .offByDefault()
            .gate(ASYNC.replace('/', '.'))
            .calls(FILE.replace('/', '.'))
            .calls(QUEUE.replace('/', '.'))
            .calls(QUEUE.replace('/', '.') + "$Listener")
            .calls(RUNTIME.replace('/', '.') + "AsyncSSTableWriterCounters")
            .calls(RUNTIME.replace('/', '.') + "ChunkSlots")
            .calls(RUNTIME.replace('/', '.') + "ChunkSlots$Kind")
            .calls(RUNTIME.replace('/', '.') + "ChunkThreads")
            .calls(RUNTIME.replace('/', '.') + "ChunkProducers")
            .setting(new Setting(
                    "writer_bytes", 4 << 20, 64 << 10, 1 << 30, "bytes of chunks that one writer may have in flight"))
            .setting(new Setting(
                    "total_bytes", 64 << 20, 1 << 20, 1L << 36, "bytes of chunks that all writers may have in flight"))
            .setting(new Setting(
                    "threads",
                    0,
                    0,
                    1024,
                    "writer threads at most; 0: as many as have a processor that no producer needs"))
            .setting(new Setting(
                    "force_bytes", 0, 0, 1L << 40, "forces a file to disk after so many uncompressed bytes; 0: never"))
            .site(Site.ofClass(BUFFERED.replace('/', '.'))
                    .patch("399f0b2e8f1e13e9bef0ebbbe5c6c9e7", "4.0.0 to 4.0.19")
                    .patch("165bd3c28dc6cbf5792b9e7a475251d3", "4.1.0 to 4.1.10")
                    .patch("83621047f89ead83851c2f1e443ed4fc", "5.0.0 to 5.0.9")
                    .patch("cd70f4eca841e4f9833ebafd07910069", "6.0-alpha2")
                    .rewriteClass(0, untouched -> 0))
            .site(Site.ofClass(SEQUENTIAL.replace('/', '.'))
                    .patch("8f187511122c81c68d2f61888e6f325b", "4.0.0 to 4.0.19")
                    .patch("ebc1342cdbcf730ca67923da1b109813", "4.1.0 to 4.1.10")
                    .patch("5fb4f792ee762ea46d2a36c70b179306", "5.0.0 to 5.0.4")
                    .patch("d37b4cd3961502e3d955d26dbf8d90ab", "5.0.5 to 5.0.9")
                    .patch("1d98a49697aa9b1ceb89a5b9f8e48a1a", "6.0-alpha2")
                    .rewriteClass(0, untouched -> 0))
            .site(Site.ofClass(COMPRESSED.replace('/', '.'))
                    .patch("fa5a0b77bc2c85fae1a0c0f15cabd64b", "4.0.0 to 4.0.19")
                    .patch("a7d28b732b46139a0787b771256d1154", "4.1.0 to 4.1.10")
                    .patch("a11fa601c72410168567177e0748881d", "5.0.0 to 5.0.9")
                    .patch("c35fb6857c1fe791b402b91a13a7901e", "6.0-alpha2")
                    .rewriteClass(6, AsyncSSTableWriter::weaveCompressed))
            .site(Site.ofClass(COMPRESSED.replace('/', '.') + "$TransactionalProxy")
                    .patch("a5cbebdea040e6e6397a75c0e862e78d", "4.0.0 to 4.0.19")
                    .patch("eba9b37a20a552db5a4cbe8e77b85d9b", "4.1.0 to 4.1.10")
                    .patch("70c5054e02bedec2d2dc731df996dd5e", "5.0.0 to 5.0.9")
                    .patch("5a58792aedd0e294e18a8ed88059a0d6", "6.0-alpha2")
                    .rewriteClass(1, proxy -> releaseBeforeCleanup(proxy, COMPRESSED)))
            .site(Site.ofClass(DIRECT.replace('/', '.'))
                    .patch("455562227f05372789de2d1764e6a8aa", "6.0-alpha2")
                    .optional()
                    .rewriteClass(3, AsyncSSTableWriter::weaveDirect))
            .site(Site.ofClass(DIRECT.replace('/', '.') + "$DirectTransactionalProxy")
                    .patch("ce85e53e8c1ad34727b88b31f36cb79f", "6.0-alpha2")
                    .optional()
                    .rewriteClass(1, proxy -> releaseBeforeCleanup(proxy, DIRECT)))
            .build();

    private AsyncSSTableWriter() {}

    private static int weaveCompressed(ClassNode writer) {
        int places = 0;
        for (MethodNode method : writer.methods.toArray(new MethodNode[0])) {
            switch (method.name) {
                case "flushData":
                    MethodNode moved = takeChunkAsArgument(method);
                    writer.methods.add(moved);
                    addListener(writer, listenerType(moved));
                    places++;
                    break;
                case "mark":
                case "open":
                case "getOnDiskFilePointer":
                    callFirst(method, "drain");
                    places++;
                    break;
                case "resetAndTruncate":
                    callFirst(method, "drainToTruncate");
                    places++;
                    break;
                case "getEstimatedOnDiskBytesWritten":
                    places += countInFlight(method);
                    break;
                default:
                    break;
            }
        }
        addDoFlush(writer);
        addDrained(writer, "truncate", "(J)V", "drainToTruncate");
        addDrained(writer, "length", "()J", "drain");
        addChunkedFile(writer);
        return places;
    }

    private static int weaveDirect(ClassNode writer) {
        int places = 0;
        for (MethodNode method : writer.methods) {
            switch (method.name) {
                case "getOnDiskFilePointer":
                case "finalizeDataFile":
                    callFirst(method, "drain");
                    places++;
                    break;
                case "setPostFlushListener":
                    // around the caller's listener, not around this class's own: that one is to run where the chunk is
                    // written
                    InsnList wrap = wrapListener("java/util/function/LongConsumer");
                    wrap.add(new VarInsnNode(Opcodes.ASTORE, 1));
                    method.instructions.insert(wrap);
                    places++;
                    break;
                default:
                    break;
            }
        }
        return places;
    }

    private static int releaseBeforeCleanup(ClassNode proxy, String writer) {
        int places = 0;
        for (MethodNode method : proxy.methods) {
            if (method.name.equals("doPreCleanup")) {
                InsnList release = new InsnList();
                release.add(new VarInsnNode(Opcodes.ALOAD, 0));
                release.add(new FieldInsnNode(Opcodes.GETFIELD, proxy.name, "this$0", "L" + writer + ";"));
                release.add(new VarInsnNode(Opcodes.ALOAD, 1));
                release.add(call("release", "(Ljava/lang/Object;Ljava/lang/Throwable;)Ljava/lang/Throwable;"));
                release.add(new VarInsnNode(Opcodes.ASTORE, 1));
                method.instructions.insert(release);
                places++;
            }
        }
        return places;
    }

    /** Moves {@code flushData}'s body into a method that gets the chunk as an argument, and calls that one with the buffer. */
    private static MethodNode takeChunkAsArgument(MethodNode flushData) {
        MethodNode moved = new MethodNode(
                Opcodes.ASM9, Opcodes.ACC_PUBLIC, "hotpatchFlushData", "(L" + BYTE_BUFFER + ";)V", null, null);
        for (AbstractInsnNode instruction : flushData.instructions.toArray()) {
            if (instruction instanceof VarInsnNode && ((VarInsnNode) instruction).var > 0) {
                ((VarInsnNode) instruction).var++;
            } else if (instruction instanceof IincInsnNode) {
                ((IincInsnNode) instruction).var++;
            } else if (instruction instanceof FrameNode && ((FrameNode) instruction).type == Opcodes.F_FULL) {
                ((FrameNode) instruction).local.add(1, BYTE_BUFFER);
            } else if (isBuffer(instruction)) {
                flushData.instructions.insertBefore(instruction, new InsnNode(Opcodes.POP));
                flushData.instructions.set(instruction, new VarInsnNode(Opcodes.ALOAD, 1));
            }
        }
        if (flushData.localVariables != null) {
            for (LocalVariableNode variable : flushData.localVariables) {
                variable.index += variable.index > 0 ? 1 : 0;
            }
        }
        moved.instructions = flushData.instructions;
        moved.tryCatchBlocks = flushData.tryCatchBlocks;
        moved.localVariables = flushData.localVariables;
        flushData.instructions = new InsnList();
        flushData.tryCatchBlocks = new ArrayList<>();
        flushData.localVariables = null;
        flushData.visitVarInsn(Opcodes.ALOAD, 0);
        loadBuffer(flushData);
        flushData.visitMethodInsn(Opcodes.INVOKEVIRTUAL, COMPRESSED, moved.name, moved.desc, false);
        flushData.visitInsn(Opcodes.RETURN);
        return moved;
    }

    private static boolean isBuffer(AbstractInsnNode instruction) {
        return instruction.getOpcode() == Opcodes.GETFIELD && ((FieldInsnNode) instruction).name.equals("buffer");
    }

    /** The type of the post-flush listener: {@code Runnable} up to 4.1, {@code LongConsumer} from 5.0 on. */
    private static String listenerType(MethodNode flushData) {
        for (AbstractInsnNode instruction : flushData.instructions) {
            if (instruction.getOpcode() == Opcodes.GETFIELD
                    && ((FieldInsnNode) instruction).name.equals("runPostFlush")) {
                String descriptor = ((FieldInsnNode) instruction).desc;
                return descriptor.substring(1, descriptor.length() - 1);
            }
        }
        throw new IllegalStateException("flushData calls no post-flush listener");
    }

    /**
     * <pre>{@code
     * protected void doFlush(int count) {
     *     long end = current();
     *     ByteBuffer next = AsyncSSTableWriter.handOff(this, count, buffer);
     *     if (next == null) {
     *         super.doFlush(count);
     *     } else {
     *         bufferOffset = end;
     *         buffer = next;
     *     }
     * }
     * }</pre>
     */
    private static void addDoFlush(ClassNode writer) {
        MethodNode doFlush = add(writer, Opcodes.ACC_PROTECTED, "doFlush", "(I)V");
        doFlush.visitVarInsn(Opcodes.ALOAD, 0);
        doFlush.visitMethodInsn(Opcodes.INVOKEVIRTUAL, COMPRESSED, "current", "()J", false);
        doFlush.visitVarInsn(Opcodes.LSTORE, 2);
        doFlush.visitVarInsn(Opcodes.ALOAD, 0);
        doFlush.visitVarInsn(Opcodes.ILOAD, 1);
        loadBuffer(doFlush);
        doFlush.instructions.add(call("handOff", "(L" + FILE + ";IL" + BYTE_BUFFER + ";)L" + BYTE_BUFFER + ";"));
        doFlush.visitVarInsn(Opcodes.ASTORE, 4);
        doFlush.visitVarInsn(Opcodes.ALOAD, 4);
        Label handedOff = new Label();
        doFlush.visitJumpInsn(Opcodes.IFNONNULL, handedOff);
        doFlush.visitVarInsn(Opcodes.ALOAD, 0);
        doFlush.visitVarInsn(Opcodes.ILOAD, 1);
        doFlush.visitMethodInsn(Opcodes.INVOKESPECIAL, SEQUENTIAL, "doFlush", "(I)V", false);
        doFlush.visitInsn(Opcodes.RETURN);
        doFlush.visitLabel(handedOff);
        doFlush.visitFrame(Opcodes.F_APPEND, 2, new Object[] {Opcodes.LONG, BYTE_BUFFER}, 0, null);
        doFlush.visitVarInsn(Opcodes.ALOAD, 0);
        doFlush.visitVarInsn(Opcodes.LLOAD, 2);
        doFlush.visitFieldInsn(Opcodes.PUTFIELD, COMPRESSED, "bufferOffset", "J");
        doFlush.visitVarInsn(Opcodes.ALOAD, 0);
        doFlush.visitVarInsn(Opcodes.ALOAD, 4);
        doFlush.visitFieldInsn(Opcodes.PUTFIELD, COMPRESSED, "buffer", "L" + BYTE_BUFFER + ";");
        doFlush.visitInsn(Opcodes.RETURN);
    }

    /** Overrides {@code setPostFlushListener} to call super's with a listener that runs on the producing thread only. */
    private static void addListener(ClassNode writer, String type) {
        MethodNode setter = add(writer, Opcodes.ACC_PUBLIC, "setPostFlushListener", "(L" + type + ";)V");
        setter.visitVarInsn(Opcodes.ALOAD, 0);
        setter.instructions.add(wrapListener(type));
        setter.visitMethodInsn(Opcodes.INVOKESPECIAL, SEQUENTIAL, setter.name, setter.desc, false);
        setter.visitInsn(Opcodes.RETURN);
    }

    private static InsnList wrapListener(String type) {
        InsnList wrap = new InsnList();
        wrap.add(new VarInsnNode(Opcodes.ALOAD, 0));
        wrap.add(new VarInsnNode(Opcodes.ALOAD, 1));
        wrap.add(call("onProducer", "(Ljava/lang/Object;L" + type + ";)L" + type + ";"));
        return wrap;
    }

    /** Overrides a method of the super class to drain first. */
    private static void addDrained(ClassNode writer, String name, String descriptor, String drain) {
        MethodNode method = add(writer, Opcodes.ACC_PUBLIC, name, descriptor);
        callFirst(method, drain);
        method.visitVarInsn(Opcodes.ALOAD, 0);
        if (Type.getArgumentTypes(descriptor).length == 1) {
            method.visitVarInsn(Opcodes.LLOAD, 1);
        }
        method.visitMethodInsn(Opcodes.INVOKESPECIAL, SEQUENTIAL, name, descriptor, false);
        method.visitInsn(Type.getReturnType(descriptor).getOpcode(Opcodes.IRETURN));
    }

    /** Makes the class a {@code ChunkedFile}. */
    private static void addChunkedFile(ClassNode writer) {
        writer.interfaces.add(FILE);
        String queue = "hotpatchQueue";
        writer.fields.add(new FieldNode(Opcodes.ACC_PRIVATE, queue, "L" + QUEUE + ";", null, null));
        addGetter(writer, queue, queue, "L" + QUEUE + ";");
        addGetter(writer, "hotpatchCompressedEnd", "chunkOffset", "J");
        addGetter(writer, "hotpatchUncompressedEnd", "uncompressedSize", "J");

        MethodNode setter = add(writer, Opcodes.ACC_PUBLIC, queue, "(L" + QUEUE + ";)V");
        setter.visitVarInsn(Opcodes.ALOAD, 0);
        setter.visitVarInsn(Opcodes.ALOAD, 1);
        setter.visitFieldInsn(Opcodes.PUTFIELD, COMPRESSED, queue, "L" + QUEUE + ";");
        setter.visitInsn(Opcodes.RETURN);

        MethodNode force = add(writer, Opcodes.ACC_PUBLIC, "hotpatchForce", "()V");
        force.visitVarInsn(Opcodes.ALOAD, 0);
        force.visitMethodInsn(Opcodes.INVOKEVIRTUAL, COMPRESSED, "syncDataOnlyInternal", "()V", false);
        force.visitInsn(Opcodes.RETURN);
    }

    private static void addGetter(ClassNode writer, String name, String field, String type) {
        MethodNode getter = add(writer, Opcodes.ACC_PUBLIC, name, "()" + type);
        getter.visitVarInsn(Opcodes.ALOAD, 0);
        getter.visitFieldInsn(Opcodes.GETFIELD, COMPRESSED, field, type);
        getter.visitInsn(Type.getType(type).getOpcode(Opcodes.IRETURN));
    }

    private static int countInFlight(MethodNode estimate) {
        int places = 0;
        for (AbstractInsnNode instruction : estimate.instructions.toArray()) {
            if (instruction.getOpcode() == Opcodes.LRETURN) {
                estimate.instructions.insertBefore(instruction, new VarInsnNode(Opcodes.ALOAD, 0));
                estimate.instructions.insertBefore(instruction, call("estimate", "(JLjava/lang/Object;)J"));
                places++;
            }
        }
        return places;
    }

    private static void callFirst(MethodNode method, String drain) {
        InsnList first = new InsnList();
        first.add(new VarInsnNode(Opcodes.ALOAD, 0));
        first.add(call(drain, "(Ljava/lang/Object;)V"));
        method.instructions.insert(first);
    }

    private static MethodNode add(ClassNode writer, int access, String name, String descriptor) {
        MethodNode method = new MethodNode(Opcodes.ASM9, access, name, descriptor, null, null);
        writer.methods.add(method);
        return method;
    }

    private static void loadBuffer(MethodNode method) {
        method.visitVarInsn(Opcodes.ALOAD, 0);
        method.visitFieldInsn(Opcodes.GETFIELD, COMPRESSED, "buffer", "L" + BYTE_BUFFER + ";");
    }

    private static MethodInsnNode call(String name, String descriptor) {
        return new MethodInsnNode(Opcodes.INVOKESTATIC, ASYNC, name, descriptor, false);
    }
}
