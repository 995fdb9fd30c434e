/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.opentest4j.TestAbortedException;
import org.testcontainers.images.builder.ImageFromDockerfile;

/** What is said to those whose engine or image can't be used. */
@Tag("containers")
@Timeout(120)
class BadInputIT {
    @TempDir
    Path folder;

    @ParameterizedTest
    @CsvSource({
        "mv /etc/cassandra/jvm-server.options /etc/cassandra/jvm.options, is of Cassandra 3.11 or older",
        "rm /etc/cassandra/jvm-server.options, has no /opt/cassandra/conf/jvm-server.options"
    })
    void anImageThatTheAgentIsNotForIsNotBuiltOn(String change, String problem) throws Exception {
        String image = new ImageFromDockerfile()
                .withFileFromString("Dockerfile", "FROM " + CassandraImage.V4_1.stock() + "\nRUN " + change + "\n")
                .get();
        assertThatThrownBy(() -> CassandraImage.withAgent(image))
                .hasMessageContaining("CASSANDRA_IMAGE " + problem)
                .hasMessageContaining("give an official image of Cassandra 4.0 to 6.0");
    }

    @ParameterizedTest
    @CsvSource({"unix:///nowhere/docker.sock", "tcp://127.0.0.1:1"})
    void noEngineIsSaidSo(String host) {
        assertThat(new DockerHost(host).problem())
                .hasValueSatisfying(problem -> assertThat(problem)
                        .startsWith("no Docker engine at " + host)
                        .contains("start one", "DOCKER_HOST"));
    }

    @ParameterizedTest
    @CsvSource({"tcp://127.0.0.1", "tcp://no such host:1", "tcp://nowhere.invalid:1"})
    void whatIsNoAddressIsSaidSo(String host) {
        assertThat(new DockerHost(host).problem())
                .hasValueSatisfying(problem -> assertThat(problem)
                        .startsWith(host + " is not the address of a Docker engine")
                        .contains("unix:///path or tcp://host:port"));
    }

    @Test
    void anEngineThatIsTooOldIsSaidSo() throws Exception {
        assertThat(problemOfOneThatAnswers("{\"Version\":\"1.13.1\",\"ApiVersion\":\"1.26\"}"))
                .contains("is too old", "1.26", "update the engine");
    }

    @Test
    void somethingElseAtTheEnginesAddressIsSaidSo() throws Exception {
        assertThat(problemOfOneThatAnswers("<html>")).contains("is no Docker engine");
    }

    @Test
    void anEngineWithoutPermissionIsSaidSo() throws Exception {
        Path socket = folder.resolve("docker.sock");
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxr-xr-x"));
        try (ServerSocketChannel engine = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            engine.bind(UnixDomainSocketAddress.of(socket));
            Files.setPosixFilePermissions(socket, Set.of());
            assertThat(problemForAnotherUser("unix://" + socket))
                    .startsWith("this user may not use the Docker engine at unix://" + socket)
                    .contains("add the user to the socket's group");
        }
    }

    @Test
    void whatCantRunIsSkippedUnlessContainersAreRequired() {
        String before = System.getProperty("it.containers", "");
        try {
            System.setProperty("it.containers", "");
            assertThatThrownBy(() -> ContainerEngine.unavailable("this is the test of it"))
                    .isInstanceOf(TestAbortedException.class)
                    .hasMessageContaining("this is the test of it");
            System.setProperty("it.containers", "required");
            assertThatThrownBy(() -> ContainerEngine.unavailable("this is the test of it"))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage("-Dit.containers=required, but this is the test of it");
        } finally {
            System.setProperty("it.containers", before);
        }
    }

    private static String problemOfOneThatAnswers(String body) throws IOException, InterruptedException {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Thread answer = new Thread(() -> answerOnce(server, body), "engine");
            answer.start();
            String problem = new DockerHost("tcp://127.0.0.1:" + server.getLocalPort())
                    .problem()
                    .orElse("");
            answer.join();
            return problem;
        }
    }

    private static void answerOnce(ServerSocket server, String body) {
        try (Socket client = server.accept()) {
            client.getInputStream().read(new byte[1024]);
            client.getOutputStream().write(("HTTP/1.0 200 OK\r\n\r\n" + body).getBytes(StandardCharsets.US_ASCII));
        } catch (IOException e) {
            throw new AssertionError("the engine that is none has not answered", e);
        }
    }

    /** Root may use every socket: it asks as nobody, who must be able to read the class. */
    private String problemForAnotherUser(String host) throws Exception {
        if (!System.getProperty("user.name").equals("root")) {
            return new DockerHost(host).problem().orElse("");
        }
        String classFile = DockerHost.class.getName().replace('.', '/') + ".class";
        Path copy = folder.resolve(classFile);
        Files.createDirectories(copy.getParent());
        Files.copy(DockerHost.class.getResourceAsStream("/" + classFile), copy);
        Process asNobody = new ProcessBuilder(
                        "setpriv",
                        "--reuid=65534",
                        "--regid=65534",
                        "--clear-groups",
                        System.getProperty("java.home") + "/bin/java",
                        "-cp",
                        folder.toString(),
                        DockerHost.class.getName(),
                        host)
                .redirectErrorStream(true)
                .directory(new File("/"))
                .start();
        return new String(asNobody.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }
}
