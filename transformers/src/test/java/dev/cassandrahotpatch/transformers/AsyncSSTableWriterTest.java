/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.FieldNode;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.MethodNode;

/** What the patch does to the bytes that it is given; that the woven code is right is shown by the tests on real writers. */
class AsyncSSTableWriterTest {
    private static final Patch PATCH = AsyncSSTableWriter.PATCH;
    private static final String COMPRESSED = "org.apache.cassandra.io.compress.CompressedSequentialWriter";

    @Test
    void itIsOptInStartsInertAndCanOnlyBeWovenAsItsClassesLoad() {
        assertThat(PATCH.onByDefault()).isFalse();
        assertThat(PATCH.gate()).isEqualTo("dev.cassandrahotpatch.runtime.AsyncSSTableWriter");
        assertThat(PATCH.startOnly()).isTrue();
    }

    @Test
    void aReleaseWithoutTheDirectWriterIsPatchedWithoutIt() {
        Map<Site, Verdict> verdicts = new HashMap<>();
        for (Site site : PATCH.sites()) {
            if (!site.isOptional()) {
                Weaver.Weaving weaving = weave(site, ClassBytes.of(site.className()));
                assertThat(weaving.fits()).as("%s", weaving.verdicts()).isTrue();
                verdicts.put(site, weaving.verdicts().get(site).woven());
            }
        }
        assertThat(verdicts).hasSize(4);
        assertThat(PatchStatus.of(PATCH, verdicts).state()).isEqualTo(PatchState.APPLIED);
        verdicts.remove(site(COMPRESSED));
        assertThat(PatchStatus.of(PATCH, verdicts).state()).isEqualTo(PatchState.WAITING);
    }

    @Test
    void aMethodOrFieldMoreOrLessOrAnotherBodyAnywhereInAClassIsARefusal() {
        List<Consumer<ClassNode>> changes = List.of(
                node -> node.fields.add(new FieldNode(0, "more", "I", null, null)),
                node -> node.methods.add(new MethodNode(Opcodes.ACC_ABSTRACT, "more", "()V", null, null)),
                node -> node.methods.remove(node.methods.size() - 1),
                node -> node.methods.get(0).instructions.insert(new InsnNode(Opcodes.NOP)));
        for (Site site : PATCH.sites()) {
            for (Consumer<ClassNode> change : site.isOptional() ? List.<Consumer<ClassNode>>of() : changes) {
                ClassNode node = ClassBytes.parse(ClassBytes.of(site.className()), 0);
                change.accept(node);
                ClassWriter changed = new ClassWriter(0);
                node.accept(changed);
                Weaver.Weaving weaving = weave(site, changed.toByteArray());
                assertThat(weaving.fits()).isFalse();
                assertThat(weaving.verdicts().get(site).kind()).isEqualTo(Verdict.Kind.REFUSED);
            }
        }
    }

    @Test
    void anOperatorCanNotVouchForAWholeClass() {
        Site unknown = Site.ofClass(COMPRESSED).rewriteClass(0, untouched -> 0);
        byte[] classFile = ClassBytes.of(COMPRESSED);
        String fingerprint = Fingerprint.of(ClassBytes.parse(classFile, 0));
        Verdict verdict = Weaver.weave(classFile, List.of(unknown), Set.of(fingerprint))
                .verdicts()
                .get(unknown);
        assertThat(verdict.kind()).isEqualTo(Verdict.Kind.REFUSED);
        assertThat(verdict.reason()).contains(fingerprint);
    }

    /** But for where the buffer comes from, what runs on the writer thread is what the release's method has. */
    @Test
    void flushDataKeepsItsInstructions() {
        byte[] stock = ClassBytes.of(COMPRESSED);
        byte[] woven = weave(site(COMPRESSED), stock).classFile();
        List<Integer> expected = new ArrayList<>();
        for (AbstractInsnNode instruction : ClassBytes.method(stock, "flushData").instructions) {
            boolean buffer = instruction instanceof FieldInsnNode field && field.name.equals("buffer");
            expected.addAll(buffer ? List.of(Opcodes.POP, Opcodes.ALOAD) : List.of(instruction.getOpcode()));
        }
        List<Integer> actual = new ArrayList<>();
        ClassBytes.method(woven, "hotpatchFlushData").instructions.forEach(each -> actual.add(each.getOpcode()));
        assertThat(actual).isEqualTo(expected).contains(Opcodes.POP);
    }

    private static Site site(String className) {
        return PATCH.sites().stream()
                .filter(site -> site.className().equals(className))
                .findFirst()
                .orElseThrow();
    }

    private static Weaver.Weaving weave(Site site, byte[] classFile) {
        return Weaver.weave(classFile, Collections.singletonList(site), Collections.emptySet());
    }
}
