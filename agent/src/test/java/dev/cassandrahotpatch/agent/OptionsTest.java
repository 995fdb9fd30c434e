/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cassandrahotpatch.transformers.Catalogue;
import dev.cassandrahotpatch.transformers.Patch;
import java.util.List;
import java.util.Properties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class OptionsTest {
    private static final String CAP = "response_buffer_sizing.max_initial_bytes";

    @Test
    void withoutAWordFromTheOperatorTheDefaultsHold() {
        Options options = read(null);

        assertThat(options.warnings()).isEmpty();
        assertThat(options.everywhere()).isFalse();
        for (Patch patch : Catalogue.patches()) {
            assertThat(options.disabledBy(patch) == null).as(patch.id()).isEqualTo(patch.onByDefault());
            assertThat(options.accepted(patch)).isEmpty();
        }
    }

    @Test
    void aPatchIsSwitchedOffByPropertyOrArgumentAndTheReasonNamesIt() {
        assertThat(read(null, "cache_capacity", "false").disabledBy(patch("cache_capacity")))
                .isEqualTo("-Dcassandra.hotpatch.cache_capacity=false");
        assertThat(read("cache_capacity=FALSE").disabledBy(patch("cache_capacity")))
                .isEqualTo("agent argument cache_capacity=FALSE");
    }

    @Test
    void aSystemPropertyWinsOverAnArgument() {
        assertThat(read("cache_capacity=false", "cache_capacity", "true").disabledBy(patch("cache_capacity")))
                .isNull();
        assertThat(read("cache_capacity=true", "cache_capacity", "false").disabledBy(patch("cache_capacity")))
                .isNotNull();
    }

    @Test
    void theMasterSwitchWinsOverThePatches() {
        Options options = read("cache_capacity=true", "enabled", "false");

        for (Patch patch : Catalogue.patches()) {
            assertThat(options.disabledBy(patch)).isEqualTo("-Dcassandra.hotpatch.enabled=false");
        }
    }

    @Test
    void aTypoIsReportedWithTheValidNamesAndChangesNothing() {
        Options options = read("cache_capcity=false");

        assertThat(options.disabledBy(patch("cache_capacity"))).isNull();
        assertThat(options.warnings())
                .singleElement()
                .satisfies(warning -> assertThat(warning)
                        .contains("cache_capcity=false")
                        .contains("cache_capacity, ")
                        .contains("enabled")
                        .contains("scope"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "yes", "0", "off", "falsch", "true,"})
    void aValueThatIsNoBooleanIsReportedAndTheDefaultHolds(String value) {
        Options options = read(null, "cache_capacity", value);

        assertThat(options.disabledBy(patch("cache_capacity"))).isNull();
        assertThat(options.warnings())
                .singleElement()
                .satisfies(warning -> assertThat(warning)
                        .contains("-Dcassandra.hotpatch.cache_capacity=" + value)
                        .contains("neither true nor false"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "many", "-1", "9223372036854775807", "99999999999999999999", "1e6"})
    void aNumberThatIsNoneOrOutOfRangeIsReportedAndTheDefaultHolds(String value) {
        Options options = read(null, CAP, value);

        assertThat(options.settings()).isEqualTo(read(null).settings());
        assertThat(options.warnings())
                .singleElement()
                .satisfies(warning ->
                        assertThat(warning).contains(CAP + "=" + value).contains("is no number from "));
    }

    @Test
    void aNumberInRangeIsTaken() {
        assertThat(read(CAP + "=8192").settings()).containsEntry("cassandra.hotpatch." + CAP, "8192");
        assertThat(read(CAP + "=8192").warnings()).isEmpty();
    }

    @Test
    void theScopeIsTheDaemonUnlessAllIsSaid() {
        assertThat(read("scope=all").everywhere()).isTrue();
        assertThat(read("scope=daemon").everywhere()).isFalse();
        assertThat(read("scope=some").everywhere()).isFalse();
        assertThat(read("scope=some").warnings()).hasSize(1);
    }

    @Test
    void aFingerprintCanBeAcceptedForOnePatch() {
        Options options = read("cache_capacity.accept=0123");

        assertThat(options.accepted(patch("cache_capacity"))).containsExactly("0123");
        assertThat(options.accepted(patch("response_buffer_sizing"))).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", ",", " , ", "=", "=true"})
    void argumentsWithoutANameAreIgnored(String arguments) {
        assertThat(read(arguments).warnings()).isEmpty();
    }

    private static Options read(String arguments, String... keyAndValue) {
        Properties properties = new Properties();
        for (int i = 0; i < keyAndValue.length; i += 2) {
            properties.setProperty(Options.PREFIX + keyAndValue[i], keyAndValue[i + 1]);
        }
        return Options.read(arguments, properties, Catalogue.patches());
    }

    private static Patch patch(String id) {
        List<Patch> patches = Catalogue.patches();
        return patches.stream()
                .filter(patch -> patch.id().equals(id))
                .findFirst()
                .orElseThrow();
    }
}
