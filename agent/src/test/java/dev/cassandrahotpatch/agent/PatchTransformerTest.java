/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cassandrahotpatch.transformers.Catalogue;
import dev.cassandrahotpatch.transformers.ClassFiles;
import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.PatchState;
import dev.cassandrahotpatch.transformers.PatchStatus;
import dev.cassandrahotpatch.transformers.Site;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.junit.jupiter.api.Test;

class PatchTransformerTest {
    private final ClassLoader loader = getClass().getClassLoader();
    private final Patch patch = Catalogue.patches().stream()
            .filter(candidate -> candidate.id().equals("response_buffer_sizing"))
            .findFirst()
            .orElseThrow();
    private final Site site = patch.sites().get(0);
    private final PatchBoard board = new PatchBoard(Catalogue.patches());
    private final PatchTransformer transformer =
            new PatchTransformer(loader, Options.read(null, new Properties(), Catalogue.patches()), board);

    @Test
    void aTargetIsRewrittenAndThePatchIsApplied() throws Exception {
        transformer.add(patch);
        List<PatchStatus> changes = new ArrayList<>();
        board.statusesThenChangesTo(changes::add);

        byte[] rewritten = transform(loader, site.className(), ClassFiles.read(site, loader));

        assertThat(rewritten).isNotNull();
        assertThat(board.status(patch).state()).isEqualTo(PatchState.APPLIED);
        assertThat(changes)
                .singleElement()
                .satisfies(change -> assertThat(change.state()).isEqualTo(PatchState.APPLIED));
    }

    @Test
    void classesThatAreNoTargetsAreLeftAlone() throws Exception {
        transformer.add(patch);

        assertThat(transform(loader, "org.apache.cassandra.db.ReadResponse", new byte[0]))
                .isNull();
        assertThat(transform(loader, null, new byte[0])).isNull();
        assertThat(board.status(patch).state()).isEqualTo(PatchState.WAITING);
    }

    @Test
    void aClassOfTheSameNameInAnotherLoaderIsLeftAlone() throws Exception {
        transformer.add(patch);

        assertThat(transform(null, site.className(), ClassFiles.read(site, loader)))
                .isNull();
        assertThat(transform(new ClassLoader(loader) {}, site.className(), ClassFiles.read(site, loader)))
                .isNull();
        assertThat(board.status(patch).state()).isEqualTo(PatchState.WAITING);
    }

    @Test
    void bytesThatAreNoClassEndInAStateAndNeverInAnException() {
        transformer.add(patch);

        assertThat(transform(loader, site.className(), new byte[] {1, 2, 3})).isNull();
        assertThat(board.status(patch).state()).isEqualTo(PatchState.FAILED);

        assertThat(transform(loader, site.className(), null)).isNull();
        assertThat(board.status(patch).state()).isEqualTo(PatchState.FAILED);
    }

    @Test
    void aWovenClassThatAnotherAgentChangesLaterNamesThatAsTheCause() throws Exception {
        transformer.add(patch);
        transform(loader, site.className(), ClassFiles.read(site, loader));
        assertThat(board.status(patch).state()).isEqualTo(PatchState.APPLIED);

        // any other class will do for one without the method that we know
        byte[] changed = ClassFiles.read(Catalogue.patches().get(0).sites().get(0), loader);
        assertThat(transform(loader, site.className(), changed)).isNull();

        assertThat(board.status(patch).state()).isEqualTo(PatchState.REFUSED);
        assertThat(board.status(patch).reason()).contains("another agent has changed it");
    }

    private byte[] transform(ClassLoader definingLoader, String className, byte[] classFile) {
        String internalName = className == null ? null : className.replace('.', '/');
        return transformer.transform(definingLoader, internalName, null, null, classFile);
    }
}
