/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatNoException;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Processes as {@code /proc} shows them, made up: the real ones are in the integration tests. */
class LinuxProcessTest {
    private static final String CATCHES_SIGQUIT = "2000000181005ccf";
    private static final String CATCHES_NOTHING = "0000000000000000";

    @TempDir
    Path proc;

    @BeforeEach
    void thisCommand() throws IOException {
        process("self", "java", "500", "1234", CATCHES_SIGQUIT);
    }

    @Test
    void aJvmOfTheSameUserIsOpen() throws Exception {
        process("7", "java", "500", "7", CATCHES_SIGQUIT);
        assertThatNoException().isThrownBy(() -> look("7"));
    }

    @Test
    void aProcessThatIsNotThereIsSaidToBeGone() {
        assertRefused("7", "there is no process 7");
    }

    @Test
    void anotherUsersProcessIsNotOpen() throws Exception {
        process("7", "java", "501", "7", CATCHES_SIGQUIT);
        assertRefused("7", "process 7 (java) belongs to");
    }

    @Test
    void aContainersProcessIsNotOpenAndItsNumberThereIsNamed() throws Exception {
        process("7", "java", "999", "7\t1", CATCHES_SIGQUIT);
        assertRefused("7", "runs in a container", "docker exec", "it is process 1 there");
    }

    @Test
    void aProcessWithANetworkOfItsOwnIsNotOpen() throws Exception {
        process("7", "java", "500", "7", CATCHES_SIGQUIT);
        Files.delete(proc.resolve("7/ns/net"));
        Files.createSymbolicLink(proc.resolve("7/ns/net"), Path.of("net:[2]"));
        assertRefused("7", "runs in a container");
    }

    @Test
    void aProcessWithoutHotSpotIsNotOpen() throws Exception {
        process("7", "postgres", "500", "7", CATCHES_SIGQUIT);
        Files.writeString(proc.resolve("7/maps"), "7f00-7f01 r-xp 0 08:01 1 /lib/libc.so.6\n");
        assertRefused("7", "process 7 (postgres) is no Java process");
    }

    @Test
    void aJvmThatTheSignalWouldEndIsNotOpen() throws Exception {
        process("7", "java", "500", "7", CATCHES_NOTHING);
        assertRefused("7", "is no Java process that can be attached to");
    }

    @Test
    void theLastWordOnTheCommandLineHolds() throws Exception {
        process("7", "java", "500", "7", CATCHES_SIGQUIT);
        commandLine("7", "-XX:-DisableAttachMechanism", "-XX:+DisableAttachMechanism");
        assertRefused("7", "-XX:+DisableAttachMechanism", "restart");
        commandLine("7", "-XX:+DisableAttachMechanism", "-XX:-DisableAttachMechanism");
        assertThatNoException().isThrownBy(() -> look("7"));
    }

    @Test
    void aFileIsSeenOnlyIfItIsTheSame() throws Exception {
        process("7", "java", "500", "7", CATCHES_SIGQUIT);
        Path jar = Files.createFile(proc.resolve("cassandra-hotpatch.jar")).toRealPath();
        assertThat(LinuxProcess.of(proc, "7").sees(jar)).isFalse();
        Path other = proc.resolve("7/root" + jar);
        Files.createDirectories(other.getParent());
        Files.createFile(other);
        assertThat(LinuxProcess.of(proc, "7").sees(jar)).isFalse();
        Files.delete(other);
        Files.createLink(other, jar);
        assertThat(LinuxProcess.of(proc, "7").sees(jar)).isTrue();
    }

    private void look(String pid) throws Failure {
        LinuxProcess.of(proc, pid).mustBeOpenTo(LinuxProcess.of(proc, "self"));
    }

    private void assertRefused(String pid, String... why) {
        assertThatExceptionOfType(Failure.class).isThrownBy(() -> look(pid)).satisfies(failure -> {
            assertThat(failure).hasMessageContainingAll(why);
            assertThat(failure.exitCode()).isEqualTo(3);
        });
    }

    private void process(String pid, String name, String uid, String pids, String caught) throws IOException {
        Path process = Files.createDirectory(proc.resolve(pid));
        Files.writeString(process.resolve("status"), """
                Name:\t%s
                Uid:\t%2$s\t%2$s\t%2$s\t%2$s
                Gid:\t%2$s\t%2$s\t%2$s\t%2$s
                NSpid:\t%3$s
                SigCgt:\t%4$s
                """.formatted(name, uid, pids, caught));
        Files.writeString(process.resolve("maps"), "7f00-7f01 r-xp 0 08:01 1 /opt/java/lib/server/libjvm.so\n");
        Path namespaces = Files.createDirectory(process.resolve("ns"));
        Files.createSymbolicLink(namespaces.resolve("net"), Path.of("net:[1]"));
        commandLine(pid, "-Xmx1g");
    }

    private void commandLine(String pid, String... options) throws IOException {
        Files.writeString(
                proc.resolve(pid).resolve("cmdline"),
                "java\0" + String.join("\0", options) + "\0org.apache.cassandra.service.CassandraDaemon\0");
    }
}
