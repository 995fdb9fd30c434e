/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the agent can't catch, as no code of it is run: the README says what the JVM does then, and what to look at. */
@Tag("containers")
@Timeout(300)
class BrokenAgentJarIT {
    private static final String JAR = ContainerNode.AGENT_JAR;

    @ParameterizedTest(name = "{0}, {1}")
    @CsvSource({
        "V4_1, no file, rm " + JAR,
        "V4_1, a download that broke off, truncate -s 100000 " + JAR,
        "V4_1, not a jar, echo not a jar > " + JAR,
        "V4_1, not readable by Cassandra's user, chmod 600 " + JAR,
        "V6_0, no file, rm " + JAR,
        "V6_0, a download that broke off, truncate -s 100000 " + JAR,
        "V6_0, not a jar, echo not a jar > " + JAR,
        "V6_0, not readable by Cassandra's user, chmod 600 " + JAR
    })
    void theJvmNamesTheJarAndDoesNotStart(CassandraImage image, String what, String preparation) {
        try (ContainerNode node = new ContainerNode(image.withAgent()).withPreparation(preparation)) {
            assertThat(node.startAndAwaitEnd()).as("exit code").isEqualTo(1);
            assertThat(node.getLogs())
                    .contains("Error opening zip file or JAR manifest missing : " + JAR)
                    .doesNotContain("CassandraDaemon");
        }
    }
}
