/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import com.github.dockerjava.api.DockerClient;
import com.github.dockerjava.api.model.Mount;
import com.github.dockerjava.api.model.MountType;
import com.github.dockerjava.api.model.Network.Ipam;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.testcontainers.DockerClientFactory;
import org.testcontainers.containers.Network;

/**
 * Nodes of one cluster, on a network of their own. A node is an address and a volume with its data, which outlive its
 * container: the next one may be of another image. To be used by one thread.
 */
final class ContainerCluster implements AutoCloseable {
    private static final int FIRST_HOST = 11;
    private static final int TOKENS = 4;
    private static final int STOP_LIMIT_SECONDS = 60;
    private static final int ENDED_BY_SIGTERM = 143;
    /** Level, line of code, the words that the message begins with, and the exception, if any, on the next line. */
    private static final Pattern COMPLAINT = Pattern.compile(
            "^(ERROR|WARN) +\\[.*] \\d{4}-\\d\\d-\\d\\d[ T][\\d:,.]+ (\\S+\\.java:\\d+) - ((?:[^\\d/\\s]+ )*).*"
                    + "((?:\\n[\\w.$]+(?:Exception|Error)\\b)?)",
            Pattern.MULTILINE);
    /** Said of a machine, not of a node: its processors were elsewhere. */
    private static final Pattern BUSY_MACHINE =
            Pattern.compile("local pause|Gossip stage has .* pending tasks|GCInspector");

    private final DockerClient engine = ContainerEngine.client();
    private final Network network;
    private final List<InetSocketAddress> addresses = new ArrayList<>();
    private final List<String> volumes = new ArrayList<>();
    /** The container of each node, or null where it has none. */
    private final ContainerNode[] containers;

    private final List<String> endedLogs = new ArrayList<>();

    /** Makes the network and the volumes; no node is started. */
    ContainerCluster(int nodes) {
        containers = new ContainerNode[nodes];
        String subnet = freeSubnet();
        network = Network.builder()
                .createNetworkCmdModifier(
                        create -> create.withIpam(new Ipam().withConfig(new Ipam.Config().withSubnet(subnet))))
                .build();
        String prefix = subnet.replaceFirst("\\d+/\\d+$", "");
        for (int i = 0; i < nodes; i++) {
            addresses.add(new InetSocketAddress(prefix + (FIRST_HOST + i), 9042));
            volumes.add(engine.createVolumeCmd()
                    .withLabels(DockerClientFactory.DEFAULT_LABELS)
                    .exec()
                    .getName());
        }
    }

    /** The engine gives out fixed addresses only where it was told the subnet, and knows best which one is free. */
    private String freeSubnet() {
        try (Network probe = Network.newNetwork()) {
            return engine.inspectNetworkCmd()
                    .withNetworkId(probe.getId())
                    .exec()
                    .getIpam()
                    .getConfig()
                    .get(0)
                    .getSubnet();
        }
    }

    /** Where a node takes CQL clients, whichever container it has. */
    InetSocketAddress address(int node) {
        return addresses.get(node);
    }

    /** The container that a node has. */
    ContainerNode container(int node) {
        return containers[node];
    }

    /** A container, not started, in which a node goes on with its address and data. */
    ContainerNode replace(int node, String image) {
        if (containers[node] != null) {
            throw new IllegalStateException("node " + node + " has a container");
        }
        ContainerNode container = new ContainerNode(image);
        container
                .withNetwork(network)
                .withEnv("CASSANDRA_SEEDS", address(0).getAddress().getHostAddress())
                .withEnv("CASSANDRA_NUM_TOKENS", Integer.toString(TOKENS))
                // puts the coordinator before other replicas, so that a read at ONE is one of its own data
                .withEnv("CASSANDRA_ENDPOINT_SNITCH", "GossipingPropertyFileSnitch")
                .withEnv("CASSANDRA_DC", "datacenter1")
                .withExtraOptions(
                        "-Dcassandra.settings.dynamic_snitch=false",
                        // a new node has nothing to wait for, and its tokens are known
                        "-Dcassandra.settings.auto_bootstrap=false",
                        "-Dcassandra.settings.initial_token=" + tokens(node),
                        // with 0 the others would forget a node that has no tokens yet
                        "-Dcassandra.ring_delay_ms=30000",
                        // what a node misses, it misses until a repair
                        "-Dcassandra.settings.hinted_handoff_enabled=false",
                        // there are others to be told
                        "-Dcassandra.shutdown_announce_in_ms=500",
                        // the first one streams rows, the others whole files where they can
                        "-Dcassandra.settings.stream_entire_sstables=" + (node != 0),
                        // the default: with 0 a node that is alone for a while does nothing else
                        "-Dcassandra.superuser_setup_delay_ms=10000",
                        // a busy machine is no reason to fail
                        "-Dcassandra.settings.read_request_timeout=30s",
                        "-Dcassandra.settings.range_request_timeout=30s",
                        "-Dcassandra.settings.write_request_timeout=10s")
                // Testcontainers' own binds would have it pull an image first, to try them out
                .withCreateContainerCmdModifier(create -> create.withIpv4Address(
                                address(node).getAddress().getHostAddress())
                        .getHostConfig()
                        .withMounts(List.of(new Mount()
                                .withType(MountType.VOLUME)
                                .withSource(volumes.get(node))
                                .withTarget("/var/lib/cassandra"))));
        containers[node] = container;
        return container;
    }

    /** Every node has as much of the ring as any other, in as many parts. */
    private String tokens(int node) {
        int all = TOKENS * containers.length;
        return IntStream.range(0, TOKENS)
                .mapToObj(token -> BigInteger.ONE
                        .shiftLeft(64)
                        .multiply(BigInteger.valueOf(token * containers.length + node))
                        .divide(BigInteger.valueOf(all))
                        .add(BigInteger.valueOf(Long.MIN_VALUE + 1))
                        .toString())
                .collect(Collectors.joining(","));
    }

    /** Asks a node to end, as {@code docker stop} does, and removes its container. */
    void stop(int node) {
        ContainerNode container = containers[node];
        engine.stopContainerCmd(container.getContainerId())
                .withTimeout(STOP_LIMIT_SECONDS)
                .exec();
        Long exitCode = container.getCurrentContainerInfo().getState().getExitCodeLong();
        remove(node);
        if (exitCode != ENDED_BY_SIGTERM) {
            throw new AssertionError("node " + node + " has ended with " + exitCode + ", not of SIGTERM");
        }
    }

    private void remove(int node) {
        ContainerNode container = containers[node];
        containers[node] = null;
        if (container.getContainerId() != null) {
            String log = container.getLogs();
            endedLogs.add(log);
            keep(node, log);
        }
        container.stop();
    }

    /** For whoever looks into a failure. */
    private void keep(int node, String log) {
        try {
            Path folder = Files.createDirectories(Path.of(System.getProperty("nodes.folder"), "cluster"));
            Files.writeString(folder.resolve(endedLogs.size() + "-node-" + node + ".log"), log);
        } catch (IOException e) {
            throw new UncheckedIOException("can't keep the log of node " + node, e);
        }
    }

    /**
     * The errors and warnings in the logs of all containers that there are and were, but for those that a busy machine causes.
     *
     * @return the first one of each kind
     */
    Map<String, String> complaints() {
        List<String> logs = new ArrayList<>(endedLogs);
        Stream.of(containers)
                .filter(Objects::nonNull)
                .map(ContainerNode::getLogs)
                .forEach(logs::add);
        Map<String, String> complaints = new TreeMap<>();
        for (String log : logs) {
            COMPLAINT
                    .matcher(log)
                    .results()
                    .filter(found -> !BUSY_MACHINE.matcher(found.group()).find())
                    .forEach(found -> complaints.putIfAbsent(
                            String.join(" ", found.group(1), found.group(2), found.group(3), found.group(4)),
                            found.group()));
        }
        return complaints;
    }

    @Override
    public void close() {
        IntStream.range(0, containers.length)
                .filter(node -> containers[node] != null)
                .forEach(this::remove);
        volumes.forEach(volume -> engine.removeVolumeCmd(volume).exec());
        network.close();
    }
}
