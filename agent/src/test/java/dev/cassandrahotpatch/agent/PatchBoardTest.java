/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cassandrahotpatch.transformers.Catalogue;
import dev.cassandrahotpatch.transformers.ClassFiles;
import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.PatchState;
import dev.cassandrahotpatch.transformers.PatchStatus;
import dev.cassandrahotpatch.transformers.Site;
import dev.cassandrahotpatch.transformers.Weaver;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class PatchBoardTest {
    private final Patch patch = Catalogue.patches().get(0);
    private final Site site = patch.sites().get(0);
    private final PatchBoard board = new PatchBoard(Catalogue.patches());

    @Test
    void aPatchThatIsLookedAtAnewChangesItsStateOnceAndItsTimeWithIt() throws Exception {
        board.fix(PatchStatus.disabled(patch, "a test"));
        Instant disabled = board.since(patch);
        TimeUnit.MILLISECONDS.sleep(5);
        List<PatchStatus> changes = new ArrayList<>();
        board.statusesThenChangesTo(changes::add);

        byte[] classFile = ClassFiles.read(site, getClass().getClassLoader());
        board.lookedAt(
                patch,
                Map.of(
                        site,
                        Weaver.weave(classFile, List.of(site), Set.of())
                                .verdicts()
                                .get(site)));

        assertThat(board.since(patch)).isAfter(disabled);
        assertThat(changes).singleElement().satisfies(change -> {
            assertThat(change.state()).isEqualTo(PatchState.WAITING);
            assertThat(change.reason()).contains("as soon as its class loads");
        });
    }

    @Test
    void aFindingThatChangesNoStateIsNoChange() throws Exception {
        Instant before = board.since(patch);
        TimeUnit.MILLISECONDS.sleep(5);
        board.lookedAt(patch, Map.of());
        assertThat(board.since(patch)).isEqualTo(before);
    }
}
