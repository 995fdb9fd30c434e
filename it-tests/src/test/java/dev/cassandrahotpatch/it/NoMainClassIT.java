/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The JVMs that get the agent although they are no Cassandra: the one without a main class that {@code bin/cassandra}
 * starts first, with the node's options, and reads the output of (CASSANDRA-7254); tools; other programs.
 */
@Timeout(180)
class NoMainClassIT {
    private static final String SCOPE_ALL = "-Dcassandra.hotpatch.scope=all";

    @TempDir
    Path folder;

    @ParameterizedTest
    @ValueSource(ints = {11, 17, 25})
    void aJvmWithoutAMainClassDoesTheSameAsWithoutTheAgent(int java) throws Exception {
        Path javaHome = JavaHome.of(java);
        JavaRun stock = JavaRun.of(javaHome, List.of());
        assertThat(JavaRun.of(javaHome, List.of(AgentJar.option()))).isEqualTo(stock);
        assertThat(JavaRun.of(
                        javaHome,
                        List.of("-Dcassandra.hotpatch.cache_capcity=no", AgentJar.option("x=y"), AgentJar.option())))
                .as("with wrong options, and the agent twice")
                .isEqualTo(stock);
    }

    @ParameterizedTest
    @ValueSource(strings = {"4.1.10", "6.0-alpha2"})
    void nodetoolPrintsNothingElse(String version) throws Exception {
        Files.writeString(folder.resolve("logback-tools.xml"), """
                <configuration>
                  <appender name="STDERR" class="ch.qos.logback.core.ConsoleAppender">
                    <target>System.err</target>
                    <encoder>
                      <pattern>%-5level %date{HH:mm:ss,SSS} %msg%n</pattern>
                    </encoder>
                  </appender>
                  <root level="WARN">
                    <appender-ref ref="STDERR"/>
                  </root>
                </configuration>
                """);
        List<Path> classPath = new ArrayList<>(List.of(folder));
        classPath.addAll(CassandraRelease.of(version).jars());
        List<String> nodetool = List.of(
                "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
                "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
                "-Dlogback.configurationFile=logback-tools.xml",
                "-Duser.home=" + folder, // it keeps a history there
                "-cp",
                classPath(classPath),
                "org.apache.cassandra.tools.NodeTool",
                "-p",
                "1", // nobody listens there
                "status");
        JavaRun stock = JavaRun.of(JavaHome.own(), nodetool);
        assertThat(stock.stdout() + stock.stderr()).contains("Failed to connect");
        assertThat(runWithAgent(nodetool)).isEqualTo(stock);
    }

    @Test
    void anotherProgramHasNoThreadOrSocketOfTheAgent() throws Exception {
        List<String> program = List.of("-cp", classPath(List.of(testClasses())), Bystander.class.getName());
        JavaRun stock = JavaRun.of(JavaHome.own(), program);
        assertThat(stock.stdout()).contains("threads: [", "main", "sockets: 0");
        assertThat(runWithAgent(program)).isEqualTo(stock);
    }

    @Test
    void aProgramWithoutCassandraIsToldOnceIfTheAgentIsToActEverywhere() throws Exception {
        JavaRun run = JavaRun.of(
                AgentJar.option(), SCOPE_ALL, "-cp", classPath(List.of(testClasses())), Bystander.class.getName());
        assertThat(run.exit()).isZero();
        assertThat(run.stdout()).contains("threads: [");
        assertThat(warnings(run)).singleElement().asString().contains("no Cassandra on the class path", "remove");
    }

    @Test
    void aJavaThatIsNewerThanTestedIsWarnedOfAndThePatchesAreThere() throws Exception {
        List<Path> classPath = new ArrayList<>(CassandraRelease.of("4.1.10").jars());
        classPath.add(testClasses());
        JavaRun run = JavaRun.of(
                NewerJava.option(folder),
                AgentJar.option(),
                SCOPE_ALL,
                "-cp",
                classPath(classPath),
                Bystander.class.getName());
        assertThat(run.exit()).isZero();
        assertThat(run.stdout()).contains("threads: [");
        assertThat(warnings(run)).singleElement().asString().contains("Java 99 is newer than");
        assertThat(HotpatchTable.in(run.stderr()).state("cache_capacity")).isEqualTo("WAITING");
    }

    private static List<String> warnings(JavaRun run) {
        return run.stderr().lines().filter(line -> line.contains("warning")).toList();
    }

    private static JavaRun runWithAgent(List<String> arguments) throws IOException, InterruptedException {
        return JavaRun.of(
                JavaHome.own(),
                Stream.concat(Stream.of(AgentJar.option()), arguments.stream()).toList());
    }

    private static Path testClasses() throws Exception {
        return Path.of(Bystander.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI());
    }

    private static String classPath(List<Path> paths) {
        return paths.stream().map(Path::toString).collect(Collectors.joining(File.pathSeparator));
    }
}
