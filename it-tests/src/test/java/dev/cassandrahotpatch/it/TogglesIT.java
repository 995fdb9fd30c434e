/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What operators can switch and set, and what they are told when they get it wrong. */
@Timeout(180)
class TogglesIT {
    @TempDir
    Path records;

    @Test
    void patchesSwitchedOffByPropertyOrArgumentLeaveTheirClassesAlone() throws Exception {
        try (CassandraNode node = StartedNode.of(CassandraNode.of(CassandraRelease.of("4.1.10"))
                .afterJamm(
                        AgentJar.option("response_buffer_sizing=false"),
                        ClassRecorder.option(records, PatchTarget.classNames()),
                        "-Dcassandra.hotpatch.cache_capacity=false"))) {
            HotpatchTable table = node.awaitTable();
            assertThat(table.state("cache_capacity")).isEqualTo("DISABLED");
            assertThat(table.reason("cache_capacity")).contains("-Dcassandra.hotpatch.cache_capacity=false");
            assertThat(table.state("response_buffer_sizing")).isEqualTo("DISABLED");
            assertThat(table.reason("response_buffer_sizing")).contains("agent argument response_buffer_sizing=false");
            assertThat(table.state("connection_request_counter")).isEqualTo("NOT_NEEDED");
            StartedNode.assertServes(node);
            for (PatchTarget target : PatchTarget.values()) {
                assertThat(ClassRecorder.recorded(records, target.className()))
                        .as("the class of %s", target)
                        .isEqualTo(node.release().classFile(target.className()));
            }
        }
    }

    @Test
    void aSystemPropertyWinsOverAnArgument() {
        try (CassandraNode node = StartedNode.of(CassandraNode.of(CassandraRelease.of("6.0-alpha2"))
                .afterJamm(
                        AgentJar.option("cache_capacity=false,connection_request_counter=true"),
                        "-Dcassandra.hotpatch.cache_capacity=true",
                        "-Dcassandra.hotpatch.connection_request_counter=false",
                        "-Dcassandra.hotpatch.response_buffer_sizing=false"))) {
            HotpatchTable table = node.awaitTable();
            assertThat(table.state("cache_capacity")).isEqualTo("APPLIED");
            assertThat(table.state("connection_request_counter")).isEqualTo("DISABLED");
            assertThat(table.reason("connection_request_counter"))
                    .contains("-Dcassandra.hotpatch.connection_request_counter=false");
            assertThat(table.state("response_buffer_sizing")).isEqualTo("DISABLED");
            assertThat(table.reason("response_buffer_sizing"))
                    .contains("-Dcassandra.hotpatch.response_buffer_sizing=false");
            StartedNode.assertServes(node);
        }
    }

    @Test
    void theMasterSwitchTurnsEveryPatchOff() throws Exception {
        try (CassandraNode node = StartedNode.of(CassandraNode.of(CassandraRelease.of("6.0-alpha2"))
                .afterJamm(
                        AgentJar.option("cache_capacity=true"),
                        ClassRecorder.option(records, PatchTarget.classNames()),
                        "-Dcassandra.hotpatch.enabled=false"))) {
            assertThat(node.awaitTable().rows().values()).isNotEmpty().allSatisfy(row -> {
                assertThat(row.state()).isEqualTo("DISABLED");
                assertThat(row.reason()).contains("-Dcassandra.hotpatch.enabled=false");
            });
            StartedNode.assertServes(node);
            for (PatchTarget target : PatchTarget.values()) {
                assertThat(ClassRecorder.recorded(records, target.className()))
                        .as("the class of %s", target)
                        .isEqualTo(node.release().classFile(target.className()));
            }
        }
    }

    @Test
    void namesAndValuesThatMakeNoSenseWarnAndTheDefaultsHold() {
        try (CassandraNode node = StartedNode.of(CassandraNode.of(CassandraRelease.of("4.1.10"))
                .afterJamm(
                        AgentJar.option("no_such_patch=true"),
                        "-Dcassandra.hotpatch.cache_capcity=false",
                        "-Dcassandra.hotpatch.response_buffer_sizing=no",
                        "-Dcassandra.hotpatch.response_buffer_sizing.max_initial_bytes=-1"))) {
            HotpatchTable table = node.awaitTable();
            for (String told : new String[] {node.stderr(), node.log()}) {
                assertThat(warningOf(told, "-Dcassandra.hotpatch.cache_capcity=false"))
                        .contains("cache_capacity", "connection_request_counter", "response_buffer_sizing", "enabled");
                assertThat(warningOf(told, "no_such_patch=true")).contains("agent argument", "cache_capacity");
                assertThat(warningOf(told, "-Dcassandra.hotpatch.response_buffer_sizing=no"))
                        .contains("neither true nor false", "true holds");
                assertThat(warningOf(told, "-Dcassandra.hotpatch.response_buffer_sizing.max_initial_bytes=-1"))
                        .containsPattern("from \\d+ to \\d+")
                        .containsPattern("\\d+ holds");
                assertThat(told.lines().filter(line -> line.contains("[hotpatch] warning: ")))
                        .hasSize(4);
            }
            assertThat(table.state("cache_capacity")).isEqualTo("APPLIED");
            assertThat(table.state("response_buffer_sizing")).isEqualTo("APPLIED");
            StartedNode.assertServes(node);
        }
    }

    private static String warningOf(String told, String given) {
        return told.lines()
                .filter(line -> line.contains("[hotpatch] warning: ") && line.contains(given + " "))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no warning of " + given + " in\n" + told));
    }
}
