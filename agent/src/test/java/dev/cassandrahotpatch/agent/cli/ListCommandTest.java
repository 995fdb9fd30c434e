/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cassandrahotpatch.transformers.Catalogue;
import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.Setting;
import org.json.JSONArray;
import org.json.JSONObject;
import org.junit.jupiter.api.Test;

class ListCommandTest {
    @Test
    void everyPatchIsThereWithItsTicketDefaultPropertyAndSettings() {
        Run run = Run.of("list");
        assertThat(run.exit()).isZero();
        assertThat(run.err()).isEmpty();
        for (Patch patch : Catalogue.patches()) {
            assertThat(run.out())
                    .contains(patch.id() + "  " + patch.ticket() + "  " + (patch.onByDefault() ? "on" : "off"))
                    .contains(patch.summary())
                    .contains("-Dcassandra.hotpatch." + patch.id() + "=true|false");
            for (Setting setting : patch.settings()) {
                assertThat(run.out())
                        .contains("-Dcassandra.hotpatch." + patch.id() + "." + setting.name() + "=<" + setting.least())
                        .contains(setting.description());
            }
        }
    }

    @Test
    void programsGetTheSameAsJson() {
        JSONArray patches = new JSONObject(Run.of("--json", "list").out()).getJSONArray("patches");
        assertThat(patches).hasSameSizeAs(Catalogue.patches());
        for (int i = 0; i < patches.length(); i++) {
            Patch patch = Catalogue.patches().get(i);
            JSONObject row = patches.getJSONObject(i);
            assertThat(row.getString("id")).isEqualTo(patch.id());
            assertThat(row.getString("property")).isEqualTo("cassandra.hotpatch." + patch.id());
            assertThat(row.getBoolean("default")).isEqualTo(patch.onByDefault());
            assertThat(row.getJSONArray("settings")).hasSameSizeAs(patch.settings());
        }
        assertThat(Run.of("list", "--json").out())
                .isEqualTo(Run.of("--json", "list").out());
    }
}
