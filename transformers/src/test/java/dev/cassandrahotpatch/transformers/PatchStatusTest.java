/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;

class PatchStatusTest {
    private static final Site FIRST = Site.of("a.First", "one", "()V").rewrite(1, method -> 1);
    private static final Site SECOND = Site.of("b.Second", "two", "()V").rewrite(1, method -> 1);
    private static final Patch PATCH = Patch.named("two_sites", "CASSANDRA-0", "for this test")
            .site(FIRST)
            .site(SECOND)
            .build();
    private static final Verdict FITS = Verdict.fits("4.1");

    @Test
    void isAppliedOnlyOnceEverySiteIsWoven() {
        assertThat(status(FITS, FITS).state()).isEqualTo(PatchState.WAITING);
        assertThat(status(FITS.woven(), FITS).state()).isEqualTo(PatchState.WAITING);
        assertThat(status(FITS.woven(), FITS).reason()).contains("Second.two").doesNotContain("First.one");
        assertThat(status(FITS.woven(), FITS.woven()).state()).isEqualTo(PatchState.APPLIED);
    }

    @Test
    void theWorstFindingDecidesAndOnlyItsReasonsAreGiven() {
        Verdict notNeeded = Verdict.notNeeded("is fixed");
        Verdict refused = Verdict.refused("is unknown");
        Verdict failed = Verdict.failed("reading", new IllegalStateException("broken"));

        assertThat(status(FITS, notNeeded)).hasToString("two_sites NOT_NEEDED (CASSANDRA-0) is fixed");
        assertThat(status(refused, notNeeded)).hasToString("two_sites REFUSED (CASSANDRA-0) is unknown");
        assertThat(status(refused, failed).state()).isEqualTo(PatchState.FAILED);
        assertThat(status(refused, failed).reason()).contains("broken").contains("the stock code runs");
    }

    @Test
    void waitsForSitesThatHaveNotBeenSeenAndNamesThem() {
        assertThat(PatchStatus.of(PATCH, Map.of()).state()).isEqualTo(PatchState.WAITING);
        assertThat(PatchStatus.of(PATCH, Map.of(FIRST, FITS)).reason())
                .isEqualTo("not found on the class path: [Second.two]");
        assertThat(PatchStatus.of(PATCH, Map.of(FIRST, Verdict.refused("is unknown")))
                        .state())
                .isEqualTo(PatchState.REFUSED);
    }

    @Test
    void saysBySwitchWhichPropertyItIsOff() {
        assertThat(PatchStatus.disabled(PATCH, "-Dx=false"))
                .hasToString("two_sites DISABLED (CASSANDRA-0) switched off by -Dx=false");
    }

    private static PatchStatus status(Verdict first, Verdict second) {
        return PatchStatus.of(PATCH, Map.of(FIRST, first, SECOND, second));
    }
}
