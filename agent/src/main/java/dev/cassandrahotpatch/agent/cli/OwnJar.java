/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.nio.file.Paths;

/** The jar that this command runs from, which is the agent's jar. */
final class OwnJar {
    private OwnJar() {}

    /** Where the jar really is: a node keeps it open for as long as it runs, so no link that may change is given to it. */
    static Path path() throws Failure {
        try {
            return Paths.get(OwnJar.class
                            .getProtectionDomain()
                            .getCodeSource()
                            .getLocation()
                            .toURI())
                    .toRealPath();
        } catch (IOException | URISyntaxException e) {
            throw Failure.unreachable("this command does not find its own jar (" + e + "): run it from a local folder");
        }
    }
}
