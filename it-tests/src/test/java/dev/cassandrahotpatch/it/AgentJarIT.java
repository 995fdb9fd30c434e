/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.DataInputStream;
import java.io.IOException;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The one jar that operators get: it goes to the end of Cassandra's class path and must not meet anything there. */
class AgentJarIT {
    private static final int JAVA_8 = 52;

    private JarFile jar;

    @BeforeEach
    void open() throws IOException {
        jar = new JarFile(System.getProperty("agent.jar"));
    }

    @AfterEach
    void close() throws IOException {
        jar.close();
    }

    @Test
    void everyClassIsInOurPackages() {
        assertThat(classes())
                .hasSizeGreaterThan(50)
                .allSatisfy(entry -> assertThat(entry.getName()).startsWith("dev/cassandrahotpatch/"));
    }

    @Test
    void everyClassLoadsOnJava8() throws IOException {
        for (JarEntry entry : classes()) {
            try (DataInputStream in = new DataInputStream(jar.getInputStream(entry))) {
                assertThat(in.readInt()).isEqualTo(0xCAFEBABE);
                assertThat(in.readInt() & 0xffff).as(entry.getName()).isLessThanOrEqualTo(JAVA_8);
            }
        }
    }

    @Test
    void nothingButTheManifestAndTheLicencesIsBesideTheClasses() {
        assertThat(jar.stream().filter(entry -> !entry.isDirectory()).map(JarEntry::getName))
                .filteredOn(name -> !name.endsWith(".class"))
                .containsExactlyInAnyOrder(
                        "META-INF/MANIFEST.MF",
                        "META-INF/LICENSE",
                        "META-INF/NOTICE",
                        "META-INF/licenses/ASM.txt",
                        "META-INF/licenses/JSON-java.txt");
    }

    @Test
    void theManifestNamesTheAgentAndItsVersion() throws IOException {
        Attributes manifest = jar.getManifest().getMainAttributes();

        assertThat(manifest.getValue("Main-Class")).isEqualTo("dev.cassandrahotpatch.agent.cli.Main");
        assertThat(manifest.getValue("Premain-Class")).isEqualTo("dev.cassandrahotpatch.agent.Agent");
        assertThat(manifest.getValue("Can-Retransform-Classes")).isEqualTo("true");
        assertThat(manifest.getValue("Implementation-Version")).isNotBlank();
        assertThat(manifest.getValue("Class-Path")).isNull();
    }

    private List<JarEntry> classes() {
        return jar.stream().filter(entry -> entry.getName().endsWith(".class")).toList();
    }
}
