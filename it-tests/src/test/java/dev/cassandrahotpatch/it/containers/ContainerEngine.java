/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import static org.junit.jupiter.api.Assumptions.abort;

import com.github.dockerjava.api.DockerClient;
import java.util.Optional;
import org.testcontainers.DockerClientFactory;

/** The Docker engine that the container tests run on. Thread-safe. */
final class ContainerEngine {
    private ContainerEngine() {}

    /** The engine's client; without an engine the test ends as {@link #unavailable} says. */
    static DockerClient client() {
        Absence.REASON.ifPresent(ContainerEngine::unavailable);
        return DockerClientFactory.instance().client();
    }

    /**
     * Ends a test that can't run here, and says why: skips it, or, with {@code -Dit.containers=required}, fails it. Always
     * throws.
     */
    static void unavailable(String reason) {
        if (System.getProperty("it.containers", "").equals("required")) {
            throw new IllegalStateException("-Dit.containers=required, but " + reason);
        }
        System.out.println("[it] skipped: " + reason);
        abort(reason);
    }

    /** Asked once in a JVM: without an engine, every attempt takes Testcontainers seconds. */
    private static final class Absence {
        static final Optional<String> REASON = find();

        private static Optional<String> find() {
            String given = System.getenv("DOCKER_HOST");
            DockerHost host = new DockerHost(given == null ? "unix:///var/run/docker.sock" : given);
            Optional<String> problem = host.problem();
            if (given != null && problem.isPresent()) {
                return problem;
            }
            // where DOCKER_HOST is not given, it knows of more places than that one
            if (DockerClientFactory.instance().isDockerAvailable()) {
                return Optional.empty();
            }
            return problem.or(() -> Optional.of("Testcontainers finds no Docker engine that it can use, neither at "
                    + host.host() + " nor where else it looks: point DOCKER_HOST to one"));
        }
    }
}
