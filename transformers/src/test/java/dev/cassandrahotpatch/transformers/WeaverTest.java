/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.InsnNode;
import org.objectweb.asm.tree.MethodNode;

class WeaverTest {
    private static final Site SITE = ResponseBufferSizing.PATCH.sites().get(0);
    private static final byte[] STOCK = ClassBytes.of(SITE.className());
    private static final String KNOWN = Fingerprint.of(ClassBytes.method(STOCK, "build"));

    @Test
    void aKnownBodyIsRewrittenAndNothingElseOfItsClassIs() {
        byte[] woven = weave(STOCK, SITE).classFile();

        ClassNode before = ClassBytes.parse(STOCK, 0);
        ClassNode after = ClassBytes.parse(woven, 0);
        assertThat(after.methods).hasSameSizeAs(before.methods);
        assertThat(after.version).isEqualTo(before.version);
        assertThat(after.fields).hasSameSizeAs(before.fields);
        for (int i = 0; i < before.methods.size(); i++) {
            MethodNode method = before.methods.get(i);
            assertThat(after.methods.get(i).name).isEqualTo(method.name);
            assertThat(after.methods.get(i).access).isEqualTo(method.access);
            assertThat(Fingerprint.of(after.methods.get(i)).equals(Fingerprint.of(method)))
                    .as(method.name + " is as it was")
                    .isEqualTo(!method.name.equals("build"));
        }
    }

    @Test
    void anUnknownBodyIsRefusedAndItsFingerprintIsNamed() {
        byte[] altered = ClassBytes.withNopIn(STOCK, "build");
        String seen = Fingerprint.of(ClassBytes.method(altered, "build"));

        Weaver.Weaving weaving = weave(altered, SITE);

        assertThat(weaving.fits()).isFalse();
        assertThat(weaving.verdicts().get(SITE).kind()).isEqualTo(Verdict.Kind.REFUSED);
        assertThat(weaving.verdicts().get(SITE).reason()).contains(seen).contains("LocalDataResponse.build");
        assertThat(weaving.fingerprints()).containsEntry(SITE, seen);
    }

    @Test
    void theOperatorCanAcceptAnUnknownBody() {
        byte[] altered = ClassBytes.withNopIn(STOCK, "build");
        String seen = Fingerprint.of(ClassBytes.method(altered, "build"));

        Weaver.Weaving weaving = Weaver.weave(altered, Collections.singletonList(SITE), Set.of(seen));

        assertThat(weaving.fits()).isTrue();
        assertThat(weaving.verdicts().get(SITE).reason())
                .contains("accepted by the operator")
                .contains(seen);
    }

    @Test
    void aBodyThatNeedsNoPatchIsLeftAloneWithItsReason() {
        Site fixed = site().notNeeded(KNOWN, "this one is fine").rewrite(1, method -> 1);

        Weaver.Weaving weaving = weave(STOCK, fixed);

        assertThat(weaving.fits()).isFalse();
        assertThat(weaving.verdicts().get(fixed)).hasToString("NOT_NEEDED (this one is fine)");
    }

    @Test
    void anotherNumberOfPlacesThanExpectedIsARefusal() {
        Site expectsThree = site().patch(KNOWN, "4.1").rewrite(3, method -> 2);

        Weaver.Weaving weaving = weave(STOCK, expectsThree);

        assertThat(weaving.fits()).isFalse();
        assertThat(weaving.verdicts().get(expectsThree).kind()).isEqualTo(Verdict.Kind.REFUSED);
        assertThat(weaving.verdicts().get(expectsThree).reason()).contains("2 places to rewrite instead of 3");
    }

    @Test
    void aRewriteThatThrowsIsAFailure() {
        Site broken = site().patch(KNOWN, "4.1").rewrite(1, method -> {
            throw new IllegalStateException("rewrite is broken");
        });

        Weaver.Weaving weaving = weave(STOCK, broken);

        assertThat(weaving.fits()).isFalse();
        assertThat(weaving.verdicts().get(broken).kind()).isEqualTo(Verdict.Kind.FAILED);
        assertThat(weaving.verdicts().get(broken).reason())
                .contains("rewrite is broken")
                .contains("the stock code runs");
    }

    @Test
    void aRewriteThatTheVerifierWouldRejectIsAFailure() {
        Site unbalanced = site().patch(KNOWN, "4.1").rewrite(1, method -> {
            method.instructions.insert(new InsnNode(Opcodes.POP)); // from an empty stack
            return 1;
        });

        Weaver.Weaving weaving = weave(STOCK, unbalanced);

        assertThat(weaving.fits()).isFalse();
        assertThat(weaving.verdicts().get(unbalanced).kind()).isEqualTo(Verdict.Kind.FAILED);
    }

    @Test
    void oneSiteThatDoesNotFitKeepsTheWholeClassStock() {
        Site other = Site.of(
                        SITE.className(),
                        "<init>",
                        "(Lorg/apache/cassandra/db/partitions/UnfilteredPartitionIterator;"
                                + "Lorg/apache/cassandra/db/filter/ColumnFilter;)V")
                .patch("a fingerprint of nothing", "never")
                .rewrite(1, method -> 1);

        Weaver.Weaving weaving = Weaver.weave(STOCK, Arrays.asList(SITE, other), Collections.emptySet());

        assertThat(weaving.verdicts().get(SITE).kind()).isEqualTo(Verdict.Kind.FITS);
        assertThat(weaving.verdicts().get(other).kind()).isEqualTo(Verdict.Kind.REFUSED);
        assertThat(weaving.fits()).isFalse();
    }

    @Test
    void aMethodThatIsNotThereIsARefusal() {
        Site absent = Site.of(SITE.className(), "built", "()V").rewrite(1, method -> 1);

        assertThat(weave(STOCK, absent).verdicts().get(absent))
                .hasToString("REFUSED (ReadResponse$LocalDataResponse.built is not in this class)");
    }

    @Test
    void bytesThatAreNoClassAreAFailure() {
        byte[][] broken = {new byte[0], {1, 2, 3}, Arrays.copyOf(STOCK, STOCK.length / 2), withVersion(STOCK, 99)};
        for (byte[] classFile : broken) {
            Weaver.Weaving weaving = weave(classFile, SITE);
            assertThat(weaving.fits()).isFalse();
            assertThat(weaving.verdicts().get(SITE).kind()).isEqualTo(Verdict.Kind.FAILED);
        }
    }

    private static byte[] withVersion(byte[] classFile, int major) {
        byte[] copy = classFile.clone();
        copy[7] = (byte) major;
        return copy;
    }

    private static Site.Builder site() {
        return Site.of(
                SITE.className(),
                "build",
                "(Lorg/apache/cassandra/db/partitions/UnfilteredPartitionIterator;"
                        + "Lorg/apache/cassandra/db/filter/ColumnFilter;)Ljava/nio/ByteBuffer;");
    }

    private static Weaver.Weaving weave(byte[] classFile, Site site) {
        List<Site> sites = Collections.singletonList(site);
        return Weaver.weave(classFile, sites, Collections.emptySet());
    }
}
