/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.JumpInsnNode;
import org.objectweb.asm.tree.LabelNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.TypeInsnNode;
import org.objectweb.asm.tree.VarInsnNode;

class FingerprintTest {
    /** Large, with switches, lambdas, exception handlers and every kind of instruction. */
    private static final byte[] LARGE = ClassBytes.of("org.apache.cassandra.db.ColumnFamilyStore");

    @Test
    void debugInformationFramesAndConstantPoolOrderDoNotCount() {
        ClassNode original = ClassBytes.parse(LARGE, 0);
        ClassWriter renumbered = new ClassWriter(0);
        renumbered.newUTF8("a constant that shifts all others");
        ClassBytes.parse(LARGE, ClassReader.SKIP_DEBUG).accept(renumbered);
        ClassNode other = ClassBytes.parse(renumbered.toByteArray(), ClassReader.EXPAND_FRAMES);

        assertThat(original.methods).hasSizeGreaterThan(100);
        for (int i = 0; i < original.methods.size(); i++) {
            assertThat(Fingerprint.of(other.methods.get(i)))
                    .as(original.methods.get(i).name)
                    .isEqualTo(Fingerprint.of(original.methods.get(i)));
        }
    }

    @Test
    void everySingleChangeOfAnInstructionChangesTheFingerprint() {
        int changes = 0;
        for (MethodNode method : ClassBytes.parse(LARGE, 0).methods) {
            String before = Fingerprint.of(method);
            for (AbstractInsnNode instruction : method.instructions.toArray()) {
                Runnable undo = change(method, instruction);
                if (undo != null) {
                    changes++;
                    assertThat(Fingerprint.of(method)).as(method.name).isNotEqualTo(before);
                    undo.run();
                }
            }
            assertThat(Fingerprint.of(method)).as(method.name).isEqualTo(before);
        }
        assertThat(changes).isGreaterThan(1_000);
    }

    @Test
    void theExceptionTableCounts() {
        MethodNode method = ClassBytes.method(ClassBytes.of(ResponseBufferSizingTest.TARGET), "build");
        String before = Fingerprint.of(method);
        method.tryCatchBlocks.get(0).type = "java/lang/Error";
        assertThat(Fingerprint.of(method)).isNotEqualTo(before);
    }

    /** Changes one instruction; gives back what undoes it, or null for a kind that this leaves alone. */
    private static Runnable change(MethodNode method, AbstractInsnNode instruction) {
        if (instruction instanceof MethodInsnNode call) {
            String name = call.name;
            call.name += "2";
            return () -> call.name = name;
        } else if (instruction instanceof FieldInsnNode field) {
            String owner = field.owner;
            field.owner += "2";
            return () -> field.owner = owner;
        } else if (instruction instanceof VarInsnNode variable) {
            variable.var++;
            return () -> variable.var--;
        } else if (instruction instanceof TypeInsnNode type) {
            String desc = type.desc;
            type.desc += "2";
            return () -> type.desc = desc;
        } else if (instruction instanceof LdcInsnNode constant) {
            Object value = constant.cst;
            constant.cst = "another " + value;
            return () -> constant.cst = value;
        } else if (instruction instanceof JumpInsnNode jump) {
            LabelNode target = jump.label;
            LabelNode elsewhere = new LabelNode();
            method.instructions.insertBefore(jump, elsewhere);
            jump.label = elsewhere;
            return () -> {
                jump.label = target;
                method.instructions.remove(elsewhere);
            };
        } else if (instruction instanceof InsnNode && instruction.getOpcode() != Opcodes.NOP) {
            InsnNode nop = new InsnNode(Opcodes.NOP);
            method.instructions.insertBefore(instruction, nop);
            return () -> method.instructions.remove(nop);
        }
        return null;
    }
}
