/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.cassandrahotpatch.agent.CassandraDaemon;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.JarURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import org.json.JSONArray;
import org.json.JSONObject;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CheckCommandTest {
    private static final String CAFFEINE = "com/github/benmanes/caffeine/cache/Caffeine.class";
    private static final String SERVER_CONNECTION = "org/apache/cassandra/transport/ServerConnection.class";

    @TempDir
    Path folder;

    @Test
    void aLibFolderIsLookedAtAsAWhole() throws Exception {
        copy(CassandraDaemon.RESOURCE, folder);
        copy(CAFFEINE, folder);
        assertChecked(folder);
    }

    @Test
    void aHomeIsLookedAtThroughItsLibFolder() throws Exception {
        Path lib = Files.createDirectory(folder.resolve("lib"));
        copy(CassandraDaemon.RESOURCE, lib);
        copy(CAFFEINE, lib);
        assertChecked(folder);
    }

    @Test
    void aHomeOfALinuxPackageHasCassandraBesideItsLibFolder() throws Exception {
        copy(CassandraDaemon.RESOURCE, folder);
        copy(CAFFEINE, Files.createDirectory(folder.resolve("lib")));
        assertChecked(folder);
    }

    private static void assertChecked(Path target) {
        Run run = Run.of("check", target);
        assertThat(run.exit()).as(run.err()).isZero();
        assertThat(run.out())
                .contains("Cassandra 4.1.", target.toString())
                .containsPattern("cache_capacity +APPLIED +CASSANDRA-19429")
                .containsPattern("connection_request_counter +NOT_NEEDED")
                .containsPattern("response_buffer_sizing +APPLIED")
                .contains("of Caffeine 2.9.2");
    }

    @Test
    void programsGetTheSameAsJson() throws Exception {
        copy(CassandraDaemon.RESOURCE, folder);
        copy(CAFFEINE, folder);
        JSONObject found = new JSONObject(Run.of("check", folder, "--json").out());
        assertThat(found.getString("cassandra")).startsWith("4.1.");
        assertThat(states(found))
                .containsEntry("cache_capacity", "APPLIED")
                .containsEntry("connection_request_counter", "NOT_NEEDED")
                .containsEntry("response_buffer_sizing", "APPLIED");
    }

    @Test
    void oneJarSaysWhatItHasAndThatTheRestIsElsewhere() throws Exception {
        Run cassandra = Run.of("check", copy(CassandraDaemon.RESOURCE, folder));
        assertThat(cassandra.exit()).isZero();
        assertThat(cassandra.out())
                .contains("Cassandra 4.1.")
                .containsPattern("cache_capacity +WAITING .*\\n +not found in this jar: .*; check the lib folder")
                .containsPattern("response_buffer_sizing +APPLIED");

        Run caffeine = Run.of("check", copy(CAFFEINE, folder));
        assertThat(caffeine.exit()).isZero();
        assertThat(caffeine.out())
                .containsPattern("cache_capacity +APPLIED")
                .containsPattern("response_buffer_sizing +WAITING .*\\n +not found in this jar");
    }

    @Test
    void aLibFolderThatLacksAClassIsNotAsWanted() throws Exception {
        copy(CassandraDaemon.RESOURCE, folder);
        Run run = Run.of("check", folder);
        assertThat(run.exit()).isEqualTo(1);
        assertThat(run.out()).containsPattern("cache_capacity +WAITING .*\\n +not found on the class path");
    }

    @Test
    void aBodyThatNobodyKnowsIsRefusedAndWhatIsNoClassFails() throws Exception {
        jar(
                "cassandra.jar",
                Map.of(
                        CassandraDaemon.RESOURCE,
                        new byte[0],
                        SERVER_CONNECTION,
                        read(CassandraDaemon.RESOURCE),
                        "org/apache/cassandra/db/ReadResponse$LocalDataResponse.class",
                        new byte[] {1, 2, 3}));
        copy(CAFFEINE, folder);
        Run run = Run.of("check", folder);
        assertThat(run.exit()).isEqualTo(1);
        assertThat(run.out())
                .containsPattern("cache_capacity +APPLIED")
                .containsPattern("connection_request_counter +REFUSED")
                .containsPattern("response_buffer_sizing +FAILED");
    }

    @Test
    void theOptionsOfTheNodeAreTakenIntoAccount() throws Exception {
        System.setProperty("cassandra.hotpatch.response_buffer_sizing", "false");
        System.setProperty("cassandra.hotpatch.cache_capcity", "false");
        try {
            Run run = Run.of("check", copy(CassandraDaemon.RESOURCE, folder));
            assertThat(run.exit()).isZero();
            assertThat(run.out())
                    .containsPattern("response_buffer_sizing +DISABLED")
                    .contains("-Dcassandra.hotpatch.response_buffer_sizing=false; switched on, it would be APPLIED: ")
                    .contains("-Dcassandra.hotpatch.cache_capcity=false is no patch or setting");
        } finally {
            System.clearProperty("cassandra.hotpatch.response_buffer_sizing");
            System.clearProperty("cassandra.hotpatch.cache_capcity");
        }
    }

    @Test
    void whatIsNoCassandraIsAMistake() throws Exception {
        Path other = jar("other.jar", Map.of("org/example/Other.class", new byte[0]));
        assertError(2, other, "is no Cassandra");
        assertError(2, folder, "none of its 1 jars has the class " + CassandraDaemon.MAIN_CLASS);
    }

    @Test
    void twoCassandrasInOneFolderAreNamed() throws Exception {
        jar("apache-cassandra-4.1.9.jar", Map.of(CassandraDaemon.RESOURCE, new byte[0]));
        jar("apache-cassandra-4.1.10.jar", Map.of(CassandraDaemon.RESOURCE, new byte[0]));
        assertError(2, folder, "has 2 Cassandras, apache-cassandra-4.1.10.jar and apache-cassandra-4.1.9.jar");
    }

    @Test
    void anEmptyFolderAndOneThatIsNotThereAreMistakes() {
        assertError(2, folder, "there is no jar in " + folder);
        assertError(2, folder.resolve("gone"), "there is no " + folder.resolve("gone"));
    }

    @Test
    void whatIsNoJarIsNamed() throws Exception {
        copy(CassandraDaemon.RESOURCE, folder);
        Path broken = Files.write(folder.resolve("broken.jar"), new byte[] {'P', 'K', 3, 4, 0, 0});
        assertError(3, folder, broken + " is no readable jar");
        assertError(3, broken, broken + " is no readable jar");
        Files.delete(broken);
        Files.createSymbolicLink(broken, folder.resolve("gone"));
        assertError(3, folder, broken + " is not there");
    }

    @Test
    void aClassThatCanNotBeUnpackedFails() throws Exception {
        Path jar = copy(CassandraDaemon.RESOURCE, folder);
        byte[] bytes = Files.readAllBytes(jar);
        // the middle of the jar is classes; its directory, at the end, stays as it is
        for (int i = bytes.length / 8; i < bytes.length / 2 + bytes.length / 4; i += 16) {
            bytes[i] ^= 0x55;
        }
        Files.write(jar, bytes);
        Run run = Run.of("check", folder);
        assertThat(run.exit()).isEqualTo(1);
        assertThat(run.out()).containsPattern("FAILED +CASSANDRA-\\d+\\n +reading org.apache.cassandra.");
    }

    @Test
    void aVersionThatCanNotBeReadIsNamed() throws Exception {
        jar(
                "cassandra.jar",
                Map.of(
                        CassandraDaemon.RESOURCE,
                        new byte[0],
                        "org/apache/cassandra/config/version.properties",
                        "CassandraVersion=\\u00".getBytes(StandardCharsets.ISO_8859_1)));
        assertError(3, folder, "the version in " + folder.resolve("cassandra.jar") + " can't be read");
    }

    @Test
    void aFolderThatMayNotBeReadIsNamed() throws Exception {
        copy(CassandraDaemon.RESOURCE, folder);
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("-wx------"));
        try {
            assumeFalse(Files.isReadable(folder), "root may read everything");
            assertError(3, folder, "may not read the folder " + folder);
        } finally {
            Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
        }
    }

    private static void assertError(int exit, Path target, String sentence) {
        Run run = Run.of("check", target);
        assertThat(run.exit()).isEqualTo(exit);
        assertThat(run.out()).isEmpty();
        assertThat(run.err()).startsWith("error: ").contains(sentence).hasLineCount(1);
    }

    private static Map<String, String> states(JSONObject found) {
        Map<String, String> states = new HashMap<>();
        JSONArray patches = found.getJSONArray("patches");
        for (int i = 0; i < patches.length(); i++) {
            states.put(
                    patches.getJSONObject(i).getString("id"),
                    patches.getJSONObject(i).getString("state"));
        }
        return states;
    }

    /** Copies the jar of this module's class path that has a resource. */
    private static Path copy(String resource, Path where) throws Exception {
        Path jar = jarOf(resource);
        return Files.copy(jar, where.resolve(jar.getFileName()));
    }

    private static Path jarOf(String resource) throws Exception {
        URL url = CheckCommandTest.class.getClassLoader().getResource(resource);
        return Path.of(((JarURLConnection) url.openConnection()).getJarFileURL().toURI());
    }

    private static byte[] read(String resource) throws IOException {
        try (InputStream in = CheckCommandTest.class.getClassLoader().getResourceAsStream(resource)) {
            return in.readAllBytes();
        }
    }

    private Path jar(String name, Map<String, byte[]> entries) throws IOException {
        Path jar = folder.resolve(name);
        try (OutputStream file = Files.newOutputStream(jar);
                JarOutputStream out = new JarOutputStream(file)) {
            for (Map.Entry<String, byte[]> entry : entries.entrySet()) {
                out.putNextEntry(new JarEntry(entry.getKey()));
                out.write(entry.getValue());
            }
        }
        return jar;
    }
}
