/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MainTest {
    private static final List<String> COMMANDS = List.of("list", "check", "attach", "status", "enable", "disable");

    @Test
    void withoutACommandTheUsageNamesThem() {
        Run run = Run.of();
        assertThat(run.exit()).isEqualTo(2);
        assertThat(run.out()).isEmpty();
        assertThat(run.err()).contains("java -jar cassandra-hotpatch.jar").contains(COMMANDS);
    }

    @ParameterizedTest
    @ValueSource(strings = {"list", "check", "attach", "status", "enable", "disable"})
    void everyCommandExplainsItselfAndTheExitCodes(String command) {
        Run run = Run.of(command, "--help");
        assertThat(run.exit()).isZero();
        assertThat(run.out())
                .startsWith("Usage: java -jar cassandra-hotpatch.jar " + command)
                .contains("--json", "Exit codes:", "0   fine", "3   the node, or a file, could not be reached");
        assertThat(run.err()).isEmpty();
    }

    @Test
    void theVersionIsThatOfTheJar() {
        Run run = Run.of("--version");
        assertThat(run.exit()).isZero();
        assertThat(run.out()).startsWith("Cassandra Hotpatch ");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "lst",
                "list twice",
                "list --nosuch",
                "check",
                "check a b",
                "attach me",
                "attach 1 2",
                "status 1.5",
                "enable",
                "enable 1",
                "disable cache_capacity",
                "disable 1 cache_capacity now"
            })
    void aMistakeIsOneErrorAndAWayOut(String arguments) {
        Run run = Run.of((Object[]) arguments.split(" "));
        assertThat(run.exit()).isEqualTo(2);
        assertThat(run.out()).isEmpty();
        assertThat(run.err())
                .startsWith("error: ")
                .endsWith(" --help\n")
                .hasLineCount(run.err().contains("Did") ? 3 : 2);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"attach 99999999", "status 99999999", "enable 99999999 cache_capacity", "attach 0", "attach -1"})
    void aProcessThatIsNotThereCanNotBeReached(String arguments) {
        Run run = Run.of((Object[]) arguments.split(" "));
        assertThat(run.exit()).isEqualTo(3);
        assertThat(run.out()).isEmpty();
        assertThat(run.err()).startsWith("error: ").hasLineCount(1);
    }
}
