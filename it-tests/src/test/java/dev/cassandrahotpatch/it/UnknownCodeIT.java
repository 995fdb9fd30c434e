/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whatever is wrong with the code, the jar or the log folder: the node starts, serves, and says what is wrong. */
@Timeout(180)
class UnknownCodeIT {
    @TempDir
    Path folder;

    @Test
    void unknownBodiesAreRefusedWithTheirFingerprintsAndTheNodeServes() throws Exception {
        CassandraRelease release = CassandraRelease.of("4.1.10");
        Path altered = alteredJar(release, PatchTarget.CACHE_CAPACITY, PatchTarget.RESPONSE_BUFFER_SIZING);
        try (CassandraNode node =
                StartedNode.of(CassandraNode.of(release).classPathFirst(altered).afterJamm(AgentJar.option()))) {
            HotpatchTable table = node.awaitTable();
            for (PatchTarget target :
                    new PatchTarget[] {PatchTarget.CACHE_CAPACITY, PatchTarget.RESPONSE_BUFFER_SIZING}) {
                assertThat(table.state(target.patch())).isEqualTo("REFUSED");
                assertThat(table.reason(target.patch())).contains(fingerprint(altered, target));
            }
            assertThat(table.state("connection_request_counter")).isEqualTo("NOT_NEEDED");
            StartedNode.assertServes(node);
        }
    }

    @Test
    void anUnknownBodyIsPatchedOnlyIfTheOperatorAcceptsItsFingerprint() throws Exception {
        CassandraRelease release = CassandraRelease.of("6.0-alpha2");
        Path altered = alteredJar(release, PatchTarget.CACHE_CAPACITY, PatchTarget.CONNECTION_REQUEST_COUNTER);
        String accepted = fingerprint(altered, PatchTarget.CACHE_CAPACITY);
        try (CassandraNode node = StartedNode.of(CassandraNode.of(release)
                .classPathFirst(altered)
                .afterJamm(
                        AgentJar.option(),
                        ClassRecorder.option(folder, PatchTarget.classNames()),
                        "-Dcassandra.hotpatch.cache_capacity.accept=" + accepted))) {
            HotpatchTable table = node.awaitTable();
            assertThat(table.state("cache_capacity")).isEqualTo("APPLIED");
            assertThat(table.reason("cache_capacity")).contains("accepted by the operator", accepted);
            assertThat(table.state("connection_request_counter")).isEqualTo("REFUSED");
            assertThat(table.reason("connection_request_counter"))
                    .contains(fingerprint(altered, PatchTarget.CONNECTION_REQUEST_COUNTER));
            StartedNode.assertServes(node);
            assertThat(PatchTarget.CACHE_CAPACITY.calls(
                            ClassRecorder.recorded(folder, PatchTarget.CACHE_CAPACITY.className())))
                    .isNotEmpty()
                    .doesNotContain("java.util.concurrent.locks.ReentrantLock.lock");
            assertThat(ClassRecorder.recorded(folder, PatchTarget.CONNECTION_REQUEST_COUNTER.className()))
                    .isEqualTo(PatchTarget.CONNECTION_REQUEST_COUNTER.altered(release));
        }
    }

    @Test
    void codeThatAnotherAgentHasChangedIsRefusedAndTheReasonSaysSo() throws Exception {
        CassandraRelease release = CassandraRelease.of("4.1.10");
        String otherAgent = ClassReplacer.option(
                folder,
                Map.of(
                        PatchTarget.CACHE_CAPACITY.className(),
                        PatchTarget.CACHE_CAPACITY.altered(release),
                        PatchTarget.RESPONSE_BUFFER_SIZING.className(),
                        PatchTarget.RESPONSE_BUFFER_SIZING.altered(release)));
        try (CassandraNode node = StartedNode.of(CassandraNode.of(release).afterJamm(otherAgent, AgentJar.option()))) {
            HotpatchTable table = node.awaitTable();
            for (PatchTarget target :
                    new PatchTarget[] {PatchTarget.CACHE_CAPACITY, PatchTarget.RESPONSE_BUFFER_SIZING}) {
                assertThat(table.state(target.patch())).isEqualTo("REFUSED");
                assertThat(table.reason(target.patch())).contains("another agent");
            }
            StartedNode.assertServes(node);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"ResponseBufferSizes", "SpareArray"})
    void aJarWithoutARuntimeClassFailsThatPatchAndTheNodeServes(String missing) throws Exception {
        Path broken =
                AgentJar.without("dev/cassandrahotpatch/runtime/" + missing + ".class", folder.resolve("broken.jar"));
        try (CassandraNode node =
                StartedNode.of(CassandraNode.of(CassandraRelease.of("4.1.10")).afterJamm("-javaagent:" + broken))) {
            HotpatchTable table = node.awaitTable();
            assertThat(table.state("response_buffer_sizing")).isEqualTo("FAILED");
            assertThat(table.reason("response_buffer_sizing"))
                    .contains("dev.cassandrahotpatch.runtime." + missing, "the stock code runs");
            assertThat(table.state("cache_capacity")).isEqualTo("APPLIED");
            StartedNode.assertServes(node);
        }
    }

    @Test
    void anAgentThatIsNamedTwiceSaysSoOnceAndTheFirstOneRuns() {
        try (CassandraNode node = StartedNode.of(CassandraNode.of(CassandraRelease.of("4.1.10"))
                .beforeJamm(AgentJar.option("cache_capacity=false"))
                .afterJamm(AgentJar.option("response_buffer_sizing=false")))) {
            HotpatchTable table = node.awaitTable();
            assertThat(node.stderr().lines().filter(line -> line.startsWith("[hotpatch] warning: ")))
                    .singleElement()
                    .asString()
                    .contains("already", "one -javaagent option, or one attach, is enough");
            assertThat(table.state("cache_capacity")).isEqualTo("DISABLED");
            assertThat(table.state("response_buffer_sizing")).isEqualTo("APPLIED");
            StartedNode.assertServes(node);
        }
    }

    @Test
    @EnabledOnOs(value = OS.LINUX, disabledReason = "needs a folder in which not even root can make a file: /proc")
    void aLogFolderThatCantBeWrittenPutsTheTableOnStandardError() {
        assertTableIsOnStandardError(
                CassandraNode.of(CassandraRelease.of("4.1.10")).logFolder(Path.of("/proc")));
    }

    @Test
    void aFullLogFolderPutsTheTableOnStandardError() throws Exception {
        if (!run("mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder.toString())) {
            String reason = "skipped: may not mount a tiny file system (only root may), so no log folder can be full";
            System.out.println("[it] " + reason);
            abort(reason);
        }
        try {
            assertTableIsOnStandardError(
                    CassandraNode.of(CassandraRelease.of("6.0-alpha2")).logFolder(folder));
        } finally {
            assertThat(run("umount", folder.toString())).as("unmounted").isTrue();
        }
    }

    private static void assertTableIsOnStandardError(CassandraNode.Builder builder) {
        try (CassandraNode node = StartedNode.of(builder.afterJamm(AgentJar.option()))) {
            String table = node.await("the agent's table on standard error", () -> {
                String printed = node.stderr();
                int warning = printed.indexOf("[hotpatch] warning: Cassandra's log");
                return Optional.of(warning < 0 ? "" : printed.substring(warning))
                        .filter(text -> HotpatchTable.in(text)
                                .rows()
                                .keySet()
                                .equals(HotpatchTable.in(printed).rows().keySet()));
            });
            assertThat(table.lines().findFirst().orElseThrow()).contains("folder");
            assertThat(HotpatchTable.in(table).state("cache_capacity")).isEqualTo("APPLIED");
            StartedNode.assertServes(node);
        }
    }

    private static boolean run(String... command) throws InterruptedException {
        try {
            return new ProcessBuilder(command).inheritIO().start().waitFor() == 0;
        } catch (IOException noSuchCommand) {
            return false;
        }
    }

    private Path alteredJar(CassandraRelease release, PatchTarget one, PatchTarget other) throws Exception {
        return TestJar.of(
                folder.resolve("altered.jar"),
                Map.of(one.className(), one.altered(release), other.className(), other.altered(release)));
    }

    /** The fingerprint that the tool in the agent's jar prints for a patch's target in a jar. */
    private static String fingerprint(Path jar, PatchTarget target) throws Exception {
        JavaRun run = JavaRun.of(
                "-cp",
                AgentJar.path().toString(),
                "dev.cassandrahotpatch.transformers.FingerprintTool",
                jar.toString());
        Matcher line = Pattern.compile(" " + target.patch() + " \\S+ ([0-9a-f]{32}) REFUSED")
                .matcher(run.stdout());
        assertThat(line.find()).as("a line about %s in %s", target, run).isTrue();
        return line.group(1);
    }
}
