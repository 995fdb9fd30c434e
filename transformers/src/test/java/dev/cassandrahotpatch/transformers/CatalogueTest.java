/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

class CatalogueTest {
    @Test
    void everyPatchSaysWhatAnOperatorMustKnow() {
        Set<String> ids = new HashSet<>();
        for (Patch patch : Catalogue.patches()) {
            assertThat(ids.add(patch.id())).as("%s is there once", patch).isTrue();
            assertThat(patch.id()).matches("[a-z]+(_[a-z]+)*");
            assertThat(patch.ticket()).matches("CASSANDRA-\\d+");
            assertThat(patch.summary()).isNotBlank();
            assertThat(patch.sites()).isNotEmpty();
            for (Site site : patch.sites()) {
                assertThat(site.patched().keySet()).isNotEmpty().allMatch(print -> print.matches("[0-9a-f]{32}"));
                assertThat(site.notNeeded().keySet())
                        .doesNotContainAnyElementsOf(site.patched().keySet())
                        .allMatch(print -> print.matches("[0-9a-f]{32}"));
            }
        }
    }

    @Test
    void everyRuntimeClassThatAPatchCallsIsThere() throws Exception {
        for (Patch patch : Catalogue.patches()) {
            for (String runtimeClass : patch.runtimeClasses()) {
                assertThat(Class.forName(runtimeClass, false, getClass().getClassLoader())
                                .getPackageName())
                        .isEqualTo("dev.cassandrahotpatch.runtime");
            }
        }
    }
}
