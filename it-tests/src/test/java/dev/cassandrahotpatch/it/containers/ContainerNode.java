/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import com.datastax.oss.driver.api.core.CqlSession;
import com.github.dockerjava.api.DockerClient;
import com.github.dockerjava.api.model.PortBinding;
import dev.cassandrahotpatch.it.AgentJar;
import dev.cassandrahotpatch.it.CassandraNode;
import dev.cassandrahotpatch.it.HotpatchTable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.output.OutputFrame;
import org.testcontainers.containers.startupcheck.StartupCheckStrategy;
import org.testcontainers.containers.wait.strategy.AbstractWaitStrategy;
import org.testcontainers.utility.MountableFile;

/**
 * A Cassandra node in a container of an image that keeps the official one's contract, with a small heap and without the
 * waits that a node alone has no use for. {@link #start()} returns when it takes clients, and fails at once, with the end
 * of its log, if it ends instead. To be used by one thread.
 */
final class ContainerNode extends GenericContainer<ContainerNode> {
    /** Where the images' README and ours put the agent. */
    static final String AGENT_JAR = "/opt/cassandra/lib/cassandra-hotpatch.jar";

    /** The line of {@code jvm-server.options}, or what is added to {@code JVM_EXTRA_OPTS}. */
    static final String AGENT_OPTION = "-javaagent:" + AGENT_JAR;

    private static final int CQL_PORT = 9042;
    private static final Duration START_LIMIT = Duration.ofMinutes(3);
    private static final long POLL_MILLIS = 200;
    private static final int TAIL_LINES = 40;
    private static final List<String> FAST_START = List.of(
            "-Dcassandra.ring_delay_ms=0",
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            "-Dcassandra.superuser_setup_delay_ms=0",
            "-Dcassandra.shutdown_announce_in_ms=0",
            "-Dcassandra.config.allow_system_properties=true",
            "-Dcassandra.settings.discovery_timeout=0s");

    private final List<String> extraOptions = new ArrayList<>(FAST_START);
    private final List<String> preparation = new ArrayList<>();
    private CqlSession cql;

    /** A node of an image that is here: {@link CassandraImage#stock()}, {@link CassandraImage#withAgent()}. */
    ContainerNode(String image) {
        super(image);
        withExposedPorts(CQL_PORT);
        // otherwise all that the image exposes would be open on every interface of this machine
        withCreateContainerCmdModifier(container -> container
                .getHostConfig()
                .withPublishAllPorts(false)
                .withPortBindings(PortBinding.parse("127.0.0.1::" + CQL_PORT)));
        withEnv("MAX_HEAP_SIZE", "512M");
        withEnv("HEAP_NEWSIZE", "128M");
        waitingFor(new AbstractWaitStrategy() {
            @Override
            protected void waitUntilReady() {
                await(
                        "the line that it listens for clients",
                        () -> Optional.of(getLogs()).filter(log -> log.contains("Starting listening for CQL clients")));
            }
        });
    }

    /** Puts the agent's jar where the documentation has it, without an option that names it. */
    ContainerNode withAgentJar() {
        return withCopyFileToContainer(MountableFile.forHostPath(AgentJar.path(), 0644), AGENT_JAR);
    }

    /** Adds options through {@code JVM_EXTRA_OPTS}: they come last, behind jamm's agent. */
    ContainerNode withExtraOptions(String... options) {
        extraOptions.addAll(List.of(options));
        return this;
    }

    /** Adds lines to {@code jvm-server.options}: they come before jamm's agent. */
    ContainerNode withServerOptions(String... lines) {
        for (String line : lines) {
            withPreparation("echo '" + line + "' >> /opt/cassandra/conf/jvm-server.options");
        }
        return this;
    }

    /** Limits what the container may use; the heap is 512 MiB of it. */
    ContainerNode withMemoryLimit(long bytes) {
        return withCreateContainerCmdModifier(
                container -> container.getHostConfig().withMemory(bytes).withMemorySwap(bytes));
    }

    /** Has a shell run a command as root in the container before the entrypoint is run. */
    ContainerNode withPreparation(String command) {
        preparation.add(command);
        return this;
    }

    @Override
    protected void configure() {
        super.configure();
        withEnv("JVM_EXTRA_OPTS", String.join(" ", extraOptions));
        withCreateContainerCmdModifier(container -> {
            if (!preparation.isEmpty()) {
                container
                        .withEntrypoint("bash", "-c")
                        .withCmd(String.join(" && ", preparation) + " && exec docker-entrypoint.sh cassandra -f");
            }
        });
    }

    @Override
    public void start() {
        boolean first = getContainerId() == null;
        long begun = System.nanoTime();
        super.start();
        if (first) {
            System.out.println("[it] " + getDockerImageName() + " took "
                    + Duration.ofNanos(System.nanoTime() - begun).toMillis() + " ms to CQL, its container included");
        }
    }

    /**
     * Starts a container of which it is expected that it ends by itself.
     *
     * @return its exit code
     */
    long startAndAwaitEnd() {
        withStartupCheckStrategy(new StartupCheckStrategy() {
            @Override
            public StartupStatus checkStartupState(DockerClient engine, String container) {
                return StartupStatus.SUCCESSFUL;
            }
        });
        waitingFor(new AbstractWaitStrategy() {
            @Override
            protected void waitUntilReady() {
                // ended or not: what is waited for is the end
            }
        });
        super.start();
        long limit = System.nanoTime() + START_LIMIT.toNanos();
        while (isRunning()) {
            if (System.nanoTime() > limit) {
                throw new IllegalStateException(
                        this + " has not ended within " + START_LIMIT.toSeconds() + " s" + tail());
            }
            pause();
        }
        return getCurrentContainerInfo().getState().getExitCodeLong();
    }

    /** Waits until the agent's table is in Cassandra's log, with a line for each patch; premain's goes to standard error. */
    HotpatchTable awaitTable() {
        return await(
                "the agent's table in the log",
                () -> Optional.of(HotpatchTable.in(getLogs(OutputFrame.OutputType.STDOUT)))
                        .filter(HotpatchTable::isComplete));
    }

    /**
     * Waits for something to be true of this node; fails, with the end of its log, when the node ends or it takes too long.
     *
     * @param what what is waited for, for the failure's message
     * @param condition empty as long as it is not there
     */
    <T> T await(String what, Supplier<Optional<T>> condition) {
        long limit = System.nanoTime() + START_LIMIT.toNanos();
        while (true) {
            boolean alive = isRunning();
            Optional<T> found = condition.get();
            if (found.isPresent()) {
                return found.get();
            }
            if (!alive) {
                throw new IllegalStateException(this + " has ended before " + what + " was there" + tail());
            }
            if (System.nanoTime() > limit) {
                throw new IllegalStateException(
                        this + " has had " + START_LIMIT.toSeconds() + " s without " + what + tail());
            }
            pause();
        }
    }

    private static void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(POLL_MILLIS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while waiting for a container", e);
        }
    }

    /** A session of the Java driver, that is opened once and closed with the node. */
    CqlSession cql() {
        if (cql == null) {
            cql = CassandraNode.connect(new InetSocketAddress(getHost(), getMappedPort(CQL_PORT)));
        }
        return cql;
    }

    /** The options of the JVM that runs here, in their order. */
    List<String> jvmOptions() {
        return List.of(run("cat", "/proc/1/cmdline").getStdout().split("\0"));
    }

    /** Runs {@code nodetool} inside. */
    ExecResult nodetool(String... arguments) {
        return run(Stream.concat(Stream.of("nodetool"), Stream.of(arguments)).toArray(String[]::new));
    }

    /** Runs a command inside, as root. */
    ExecResult run(String... command) {
        try {
            return execInContainer(command);
        } catch (IOException e) {
            throw new UncheckedIOException("can't run " + List.of(command) + " in " + this, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while " + List.of(command) + " ran in " + this, e);
        }
    }

    @Override
    public void stop() {
        if (cql != null) {
            cql.close();
            cql = null;
        }
        super.stop();
    }

    private String tail() {
        List<String> lines = getLogs().lines().toList();
        return ":\n" + String.join("\n", lines.subList(Math.max(0, lines.size() - TAIL_LINES), lines.size()));
    }

    @Override
    public String toString() {
        return "the container of " + getDockerImageName();
    }
}
