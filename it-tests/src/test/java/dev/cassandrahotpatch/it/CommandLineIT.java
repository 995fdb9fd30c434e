/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The command line as operators run it: {@code java -jar cassandra-hotpatch.jar}. */
@Timeout(120)
class CommandLineIT {
    private static final Pattern ROW = Pattern.compile("^([a-z_]+) +([A-Z_]+) +(CASSANDRA-\\d+)(?: since (\\S+))?$");

    @TempDir
    Path folder;

    @Test
    void listNamesEveryPatchWithItsProperty() throws Exception {
        JavaRun list = cli("list");
        assertThat(list.exit()).isZero();
        assertThat(list.stderr()).isEmpty();
        assertThat(list.stdout())
                .contains("CASSANDRA-19429", "CASSANDRA-21569", "CASSANDRA-21285")
                .contains("-Dcassandra.hotpatch.cache_capacity=true|false")
                .as("no colours, because it is not printed to a terminal")
                .doesNotContain("\u001b");
    }

    @ParameterizedTest
    @CsvSource({"4.1.10, NOT_NEEDED, APPLIED", "6.0-alpha2, APPLIED, NOT_NEEDED"})
    void checkSaysWhatWouldBecomeOfEachPatchAndRunsNothingOfCassandra(
            String version, String counterState, String responseState) throws Exception {
        CassandraRelease release = CassandraRelease.of(version);
        Path lib = folderOfLinks(release);
        long began = System.nanoTime();
        JavaRun check = cli("check", lib.toString());
        long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
        System.out.println("[it] check of " + version + " took " + millis + " ms");

        assertThat(check.exit()).as(check.stderr()).isZero();
        assertThat(check.stdout()).contains("Cassandra " + version);
        assertThat(states(check))
                .isEqualTo(Map.of(
                        "cache_capacity",
                        "APPLIED",
                        "connection_request_counter",
                        counterState,
                        "response_buffer_sizing",
                        responseState,
                        "async_sstable_writer",
                        "DISABLED"));
        assertThat(millis).isLessThan(5_000);

        JavaRun traced = JavaRun.of("-Xlog:class+load", "-jar", AgentJar.path().toString(), "check", lib.toString());
        assertThat(traced.stdout()).contains("dev.cassandrahotpatch.agent.cli.CheckCommand");
        assertThat(traced.stdout().lines().filter(line -> line.contains("[class,load]")))
                .noneMatch(line -> line.contains("org.apache.cassandra.") || line.contains("com.github.benmanes."));
        for (Path jar : release.jars()) {
            Files.delete(lib.resolve(jar.getFileName())); // JUnit would warn of each
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"4.1.10", "6.0-alpha2"})
    void aNodeThatServesIsPatchedAndUnpatchedWhileItRuns(String version) throws Exception {
        String patch = version.startsWith("6") ? "connection_request_counter" : "response_buffer_sizing";
        try (CassandraNode node = StartedNode.of(CassandraNode.of(CassandraRelease.of(version)))) {
            StartedNode.assertServes(node);
            String pid = Long.toString(node.pid());
            JavaRun before = cli("status", pid);
            assertThat(before.exit()).isEqualTo(3);
            assertThat(before.stderr()).contains("has no agent", "attach " + pid);

            attachTwiceAtOnce(pid);
            assertThat(node.awaitTable().state(patch)).isEqualTo("APPLIED");
            StartedNode.assertServes(node);

            JavaRun disabled = cli("disable", pid, patch);
            assertThat(disabled.exit()).as(disabled.stderr()).isZero();
            assertThat(states(disabled)).isEqualTo(Map.of(patch, "DISABLED"));
            JavaRun status = cli("status", pid);
            assertThat(status.exit()).isZero();
            assertThat(states(status))
                    .hasSize(4)
                    .containsEntry(patch, "DISABLED")
                    .containsEntry("cache_capacity", "APPLIED");
            assertThat(status.stdout())
                    .containsPattern("DISABLED +CASSANDRA-\\d+ since 20\\d\\d-")
                    .contains("an operator");
            StartedNode.assertServes(node);

            JavaRun enabled = cli("enable", "--json", pid, patch);
            assertThat(enabled.exit()).as(enabled.stderr()).isZero();
            assertThat(enabled.stdout())
                    .startsWith("{\"pid\":" + pid + ",")
                    .contains("\"id\":\"" + patch + "\",\"state\":\"APPLIED\"");

            JavaRun again = cli("attach", pid);
            assertThat(again.exit()).as(again.stderr()).isZero();
            assertThat(again.stdout()).contains("already: nothing was done");
            assertThat(states(again)).containsEntry(patch, "APPLIED");

            JavaRun found = cli("status"); // the tests of others may have nodes on this machine
            assertThat(found.stdout() + found.stderr()).contains(pid);
            StartedNode.assertServes(node);

            assertThat(node.stderr()).doesNotContain("error");
            stopInTheMiddle(node);
        }
    }

    /** Two operators: whoever comes second finds the agent there, and both see it. */
    private static void attachTwiceAtOnce(String pid) throws Exception {
        CompletableFuture<JavaRun> first = CompletableFuture.supplyAsync(() -> uncheckedCli("attach", pid));
        CompletableFuture<JavaRun> second = CompletableFuture.supplyAsync(() -> uncheckedCli("attach", pid));
        for (JavaRun attach : List.of(first.get(), second.get())) {
            assertThat(attach.exit()).as(attach.stdout() + attach.stderr()).isZero();
            assertThat(attach.stdout()).containsPattern("Cassandra " + pid + " (now )?has Cassandra Hotpatch ");
            assertThat(states(attach)).hasSize(4).containsEntry("cache_capacity", "APPLIED");
        }
    }

    /** The node is stopped, so that the command has to wait for it, and ends while it does. */
    private static void stopInTheMiddle(CassandraNode node) throws Exception {
        String pid = Long.toString(node.pid());
        signal("STOP", pid);
        CompletableFuture<JavaRun> attach = CompletableFuture.supplyAsync(() -> uncheckedCli("attach", pid));
        TimeUnit.SECONDS.sleep(2);
        signal("KILL", pid);
        assertThat(attach.get().exit()).isEqualTo(3);
        assertThat(attach.get().stderr()).startsWith("error: ").hasLineCount(1);
    }

    @Test
    void aNodeThatGotTheAgentAtItsStartIsTreatedTheSame() throws Exception {
        try (SleepingJvm node =
                SleepingJvm.cassandra(folder, AgentJar.option("cache_capacity=false,cache_capcity=1"))) {
            JavaRun attach = cli("attach", node.pid());
            assertThat(attach.exit()).as(attach.stderr()).isZero();
            assertThat(attach.stdout()).contains("already: nothing was done", "cache_capcity=1 is no patch");
            assertThat(states(attach)).containsEntry("cache_capacity", "DISABLED");
            JavaRun enabled = cli("enable", node.pid(), "cache_capacity");
            assertThat(enabled.exit()).as(enabled.stderr()).isZero();
            assertThat(states(enabled)).isEqualTo(Map.of("cache_capacity", "WAITING"));
        }
    }

    @Test
    void anAgentOfAnotherVersionStaysAndAPatchThatIsNotThereIsAMistake() throws Exception {
        try (SleepingJvm node = SleepingJvm.cassandra(folder, AgentJar.option())) {
            JavaRun other = cli(ofVersion("99"), "attach", node.pid());
            assertThat(other.exit()).isEqualTo(1);
            assertThat(other.stderr())
                    .contains("can't have two", "version 99", "restart")
                    .hasLineCount(1);

            JavaRun unknown = cli("enable", node.pid(), "cache_capcity");
            assertThat(unknown.exit()).isEqualTo(2);
            assertThat(unknown.stderr())
                    .contains("no patch cache_capcity", "cache_capacity, connection_request_counter")
                    .hasLineCount(1);
        }
    }

    @Test
    void theWarningOfANewerJavaIsExplained() throws Exception {
        List<String> launcher = List.of(javaFrom21().resolve("bin/java").toString());
        try (SleepingJvm node = SleepingJvm.cassandra(folder, launcher)) {
            JavaRun attach = cli("attach", node.pid());
            assertThat(attach.exit()).as(attach.stderr()).isZero();
            assertThat(attach.stdout())
                    .contains("A Java agent has been loaded dynamically", "-XX:+EnableDynamicAgentLoading")
                    .contains("add -javaagent:" + AgentJar.path().toRealPath());
        }
    }

    @Test
    void anotherJavaProgramIsLeftAlone() throws Exception {
        try (SleepingJvm jvm = SleepingJvm.other(folder)) {
            assertRefused(jvm, "is no Cassandra but org.example.Sleeper");
        }
    }

    @Test
    void aProcessThatIsNoJavaSurvivesAndSoDoesOneThatIsGone() throws Exception {
        Process sleep = new ProcessBuilder("sleep", "60").start();
        String pid = Long.toString(sleep.pid());
        try {
            JavaRun attach = cli("attach", pid);
            assertThat(attach.exit()).isEqualTo(3);
            assertThat(attach.stderr()).contains("process " + pid + " (sleep) is no Java process");
            assertThat(sleep.isAlive())
                    .as("the signal by which one attaches would have ended it")
                    .isTrue();
        } finally {
            sleep.destroyForcibly().waitFor();
        }
        JavaRun attach = cli("attach", pid);
        assertThat(attach.exit()).isEqualTo(3);
        assertThat(attach.stderr()).contains("there is no process " + pid);
    }

    @ParameterizedTest
    @ValueSource(strings = {"-XX:+DisableAttachMechanism", "-XX:-EnableDynamicAgentLoading"})
    void aNodeThatForbidsAgentsIsToldHowToAllowThem(String option) throws Exception {
        try (SleepingJvm jvm = SleepingJvm.cassandra(folder, option)) {
            assertRefused(jvm, option, "jvm-server.options");
        }
    }

    @Test
    void anotherUsersNodeIsForThatUser() throws Exception {
        List<String> launcher = new ArrayList<>(asNobody());
        launcher.addAll(SleepingJvm.java());
        readableByAll(folder);
        try (SleepingJvm jvm = SleepingJvm.cassandra(folder, launcher)) {
            assertRefused(jvm, "belongs to nobody", "sudo -u nobody");
        }
    }

    @Test
    void aNodeInAContainerIsNotReachedInto() throws Exception {
        List<String> launcher = new ArrayList<>(List.of("unshare", "--net"));
        assumeTrue(works(launcher), "this user may not make namespaces");
        launcher.addAll(SleepingJvm.java());
        try (SleepingJvm jvm = SleepingJvm.cassandra(folder, launcher)) {
            assertRefused(jvm, "container", "docker exec");
        }
    }

    @Test
    void aFolderThatMayNotBeReadIsNamed() throws Exception {
        Path jar = Files.copy(AgentJar.path(), folder.resolve("hotpatch.jar"));
        Path lib = Files.createDirectory(
                folder.resolve("lib"),
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx--x--x")));
        readableByAll(folder);
        // a java of another user
        Path bin = Files.createDirectories(folder.resolve("home/bin"));
        Files.writeString(
                bin.resolve("java"),
                "#!/bin/sh\nexec " + String.join(" ", asNobody()) + " "
                        + SleepingJvm.java().get(0) + " \"$@\"\n");
        Files.setPosixFilePermissions(bin.resolve("java"), PosixFilePermissions.fromString("rwxr-xr-x"));
        JavaRun check = JavaRun.of(folder.resolve("home"), List.of("-jar", jar.toString(), "check", lib.toString()));
        assertThat(check.exit()).isEqualTo(3);
        assertThat(check.stderr()).contains("may not read the folder " + lib);
    }

    @Test
    void aJavaThatCanNotAttachSaysWhichCan() throws Exception {
        try (SleepingJvm jvm = SleepingJvm.cassandra(folder)) {
            JavaRun attach = JavaRun.of(
                    "--limit-modules",
                    "java.base,java.management,java.management.rmi,java.instrument,jdk.management",
                    "-jar",
                    AgentJar.path().toString(),
                    "attach",
                    jvm.pid());
            assertThat(attach.exit()).isEqualTo(3);
            assertThat(attach.stderr()).contains("JRE", "jdk.attach", "JDK");
        }
    }

    @Test
    void theAgentLoadsNothingOfTheCommandLine() throws Exception {
        JavaRun run = JavaRun.of("-Xlog:class+load", AgentJar.option(), "-Dcassandra.hotpatch.scope=all", "-version");
        assertThat(run.stdout()).contains("dev.cassandrahotpatch.agent.HotPatch");
        assertThat(run.stdout()).doesNotContain("agent.cli", "shaded.picocli", "shaded.json");
    }

    private static void assertRefused(SleepingJvm jvm, String... why) throws Exception {
        JavaRun attach = cli("attach", jvm.pid());
        assertThat(attach.exit()).as(attach.stdout() + attach.stderr()).isEqualTo(3);
        assertThat(attach.stderr()).startsWith("error: ").hasLineCount(1).contains(why);
        assertThat(attach.stdout()).isEmpty();
        assertThat(jvm.isAlive()).isTrue();
    }

    private static JavaRun cli(String... arguments) throws IOException, InterruptedException {
        return cli(AgentJar.path(), arguments);
    }

    private static JavaRun cli(Path jar, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("-jar", jar.toString()));
        command.addAll(List.of(arguments));
        return JavaRun.of(Path.of(System.getProperty("java.home")), command);
    }

    private static JavaRun uncheckedCli(String... arguments) {
        try {
            return cli(arguments);
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Map<String, String> states(JavaRun run) {
        return run.stdout()
                .lines()
                .map(ROW::matcher)
                .filter(Matcher::matches)
                .collect(Collectors.toMap(row -> row.group(1), row -> row.group(2)));
    }

    private Path folderOfLinks(CassandraRelease release) throws IOException {
        Path lib = Files.createDirectory(folder.resolve("lib-" + release.version()));
        for (Path jar : release.jars()) {
            Files.createSymbolicLink(lib.resolve(jar.getFileName()), jar);
        }
        return lib;
    }

    /** The jar under test with another version in its manifest. */
    private Path ofVersion(String version) throws IOException {
        Path copy = folder.resolve("cassandra-hotpatch-" + version + ".jar");
        try (JarFile jar = new JarFile(AgentJar.path().toFile())) {
            Manifest manifest = new Manifest(jar.getManifest());
            manifest.getMainAttributes().put(Attributes.Name.IMPLEMENTATION_VERSION, version);
            try (OutputStream file = Files.newOutputStream(copy);
                    JarOutputStream out = new JarOutputStream(file, manifest)) {
                for (Enumeration<JarEntry> entries = jar.entries(); entries.hasMoreElements(); ) {
                    JarEntry entry = entries.nextElement();
                    if (!entry.getName().equals(JarFile.MANIFEST_NAME)) {
                        out.putNextEntry(new JarEntry(entry.getName()));
                        jar.getInputStream(entry).transferTo(out);
                    }
                }
            }
        }
        return copy;
    }

    /** A Java that warns of agents which are added later, from where Linux distributions put it. */
    private static Path javaFrom21() throws IOException {
        Path distribution = Path.of("/usr/lib/jvm");
        if (Files.isDirectory(distribution)) {
            try (Stream<Path> homes = Files.list(distribution)) {
                for (Path home : homes.sorted().toList()) {
                    if (home.getFileName().toString().matches("(java|temurin)-(1\\.)?2[1-9]\\b.*")
                            && Files.isExecutable(home.resolve("bin/java"))) {
                        return home;
                    }
                }
            }
        }
        return abort("there is no Java from 21 on in " + distribution);
    }

    private static List<String> asNobody() throws Exception {
        List<String> launcher = List.of("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups");
        assumeTrue(works(launcher), "this user may not become another");
        return launcher;
    }

    private static boolean works(List<String> launcher) throws InterruptedException {
        List<String> command = new ArrayList<>(launcher);
        command.add("true");
        try {
            return new ProcessBuilder(command).start().waitFor() == 0;
        } catch (IOException notInstalled) {
            return false;
        }
    }

    private static void readableByAll(Path folder) throws IOException {
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
    }

    private static void signal(String signal, String pid) throws IOException, InterruptedException {
        assertThat(new ProcessBuilder("kill", "-" + signal, pid).start().waitFor())
                .isZero();
    }
}
