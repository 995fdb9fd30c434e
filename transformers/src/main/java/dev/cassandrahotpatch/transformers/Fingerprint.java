/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.FieldNode;
import org.objectweb.asm.tree.IincInsnNode;
import org.objectweb.asm.tree.IntInsnNode;
import org.objectweb.asm.tree.InvokeDynamicInsnNode;
import org.objectweb.asm.tree.JumpInsnNode;
import org.objectweb.asm.tree.LabelNode;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.LookupSwitchInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.MultiANewArrayInsnNode;
import org.objectweb.asm.tree.TableSwitchInsnNode;
import org.objectweb.asm.tree.TryCatchBlockNode;
import org.objectweb.asm.tree.TypeInsnNode;
import org.objectweb.asm.tree.VarInsnNode;

/**
 * The identity of a method's body, or of a whole class: a hash over instructions and exception tables.
 *
 * <p>Constant-pool order, debug information, line numbers and stack map frames do not count, so that the same source
 * compiled with other flags keeps its fingerprint; jump targets count as instruction numbers. What a body calls, reads,
 * writes, compares and catches all counts, so that another body has another fingerprint.
 */
public final class Fingerprint {
    /** 128 bits are far more than accident needs; nothing here defends against an adversary who writes class files. */
    private static final int BYTES = 16;

    private static final char[] HEX = "0123456789abcdef".toCharArray();

    private final StringBuilder text = new StringBuilder(2048);
    private final Map<LabelNode, Integer> positions = new HashMap<>();

    private Fingerprint() {}

    /**
     * Computes the fingerprint of a method.
     *
     * @return 32 lower-case hexadecimal digits
     */
    public static String of(MethodNode method) {
        return hash(new Fingerprint().describe(method));
    }

    /**
     * Computes the fingerprint of a class: its super class, interfaces, fields and methods with their bodies, in the order
     * in which the class has them.
     *
     * @return 32 lower-case hexadecimal digits
     */
    public static String of(ClassNode classNode) {
        Fingerprint fingerprint = new Fingerprint();
        fingerprint.add(classNode.name).add(classNode.superName).add(classNode.interfaces);
        for (FieldNode field : classNode.fields) {
            fingerprint.add("field").add(field.access).add(field.name).add(field.desc);
        }
        for (MethodNode method : classNode.methods) {
            fingerprint
                    .add("method")
                    .add(method.access)
                    .add(method.name)
                    .add(method.desc)
                    .add(of(method));
        }
        return hash(fingerprint.text.toString());
    }

    private String describe(MethodNode method) {
        int position = 0;
        for (AbstractInsnNode instruction : method.instructions) {
            if (instruction instanceof LabelNode) {
                positions.put((LabelNode) instruction, position);
            } else if (instruction.getOpcode() >= 0) {
                position++;
            }
        }
        for (AbstractInsnNode instruction : method.instructions) {
            if (instruction.getOpcode() >= 0) { // labels, line numbers and frames have none
                describe(instruction);
            }
        }
        for (TryCatchBlockNode block : method.tryCatchBlocks) {
            add("try").add(block.start).add(block.end).add(block.handler).add(block.type);
        }
        return text.toString();
    }

    private void describe(AbstractInsnNode instruction) {
        add(instruction.getOpcode());
        if (instruction instanceof MethodInsnNode) {
            MethodInsnNode call = (MethodInsnNode) instruction;
            add(call.owner).add(call.name).add(call.desc).add(call.itf);
        } else if (instruction instanceof FieldInsnNode) {
            FieldInsnNode field = (FieldInsnNode) instruction;
            add(field.owner).add(field.name).add(field.desc);
        } else if (instruction instanceof VarInsnNode) {
            add(((VarInsnNode) instruction).var);
        } else if (instruction instanceof JumpInsnNode) {
            add(((JumpInsnNode) instruction).label);
        } else if (instruction instanceof TypeInsnNode) {
            add(((TypeInsnNode) instruction).desc);
        } else if (instruction instanceof LdcInsnNode) {
            Object constant = ((LdcInsnNode) instruction).cst;
            add(constant.getClass().getSimpleName()).add(constant);
        } else if (instruction instanceof IntInsnNode) {
            add(((IntInsnNode) instruction).operand);
        } else if (instruction instanceof IincInsnNode) {
            IincInsnNode increment = (IincInsnNode) instruction;
            add(increment.var).add(increment.incr);
        } else if (instruction instanceof InvokeDynamicInsnNode) {
            InvokeDynamicInsnNode call = (InvokeDynamicInsnNode) instruction;
            add(call.name).add(call.desc).add(call.bsm);
            for (Object argument : call.bsmArgs) {
                add(argument);
            }
        } else if (instruction instanceof TableSwitchInsnNode) {
            TableSwitchInsnNode table = (TableSwitchInsnNode) instruction;
            add(table.min).add(table.max).add(table.dflt).addAll(table.labels);
        } else if (instruction instanceof LookupSwitchInsnNode) {
            LookupSwitchInsnNode lookup = (LookupSwitchInsnNode) instruction;
            add(lookup.keys).add(lookup.dflt).addAll(lookup.labels);
        } else if (instruction instanceof MultiANewArrayInsnNode) {
            MultiANewArrayInsnNode array = (MultiANewArrayInsnNode) instruction;
            add(array.desc).add(array.dims);
        }
        text.append('\n');
    }

    private Fingerprint add(Object operand) {
        String operandText = String.valueOf(operand);
        // the length goes in front, so that no two lists of operands read the same
        text.append(operandText.length()).append(':').append(operandText).append(' ');
        return this;
    }

    private Fingerprint add(LabelNode label) {
        return add("@" + positions.get(label));
    }

    private void addAll(List<LabelNode> labels) {
        for (LabelNode label : labels) {
            add(label);
        }
    }

    private static String hash(String description) {
        byte[] digest;
        try {
            digest = MessageDigest.getInstance("SHA-256").digest(description.getBytes(StandardCharsets.UTF_8));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java platform has SHA-256, this one does not", e);
        }
        StringBuilder hex = new StringBuilder(2 * BYTES);
        for (int i = 0; i < BYTES; i++) {
            hex.append(HEX[(digest[i] >> 4) & 0xf]).append(HEX[digest[i] & 0xf]);
        }
        return hex.toString();
    }
}
