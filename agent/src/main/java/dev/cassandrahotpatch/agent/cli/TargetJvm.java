/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import com.sun.management.HotSpotDiagnosticMXBean;
import com.sun.management.VMOption;
import dev.cassandrahotpatch.agent.CassandraDaemon;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.RuntimeMXBean;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import javax.management.MBeanServerConnection;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * A Cassandra that runs on this machine, as the same user: attached to, and connected to over JMX. To be used by one thread.
 */
final class TargetJvm implements AutoCloseable {
    private static final long AGENT_LIMIT_SECONDS = 15;
    private static final long POLL_MILLIS = 100;
    private static final int FIRST_JAVA_THAT_WARNS = 21;

    private final String pid;
    private final JMXConnector connector;
    private final MBeanServerConnection server;

    private TargetJvm(String pid, JMXConnector connector) throws IOException {
        this.pid = pid;
        this.connector = connector;
        this.server = connector.getMBeanServerConnection();
    }

    /**
     * Reaches a node.
     *
     * @param given its process id, or null for the one Cassandra that runs on this machine
     * @throws Failure if it is no Cassandra, or one that this user can't reach
     */
    static TargetJvm open(Long given) throws Failure, IOException {
        String pid = given == null ? theOnlyCassandra() : given.toString();
        if (LinuxProcess.canBeSeen()) {
            LinuxProcess.of(pid).mustBeOpenTo(LinuxProcess.of("self"));
        }
        try (Attachment attachment = attach(pid)) {
            mustBeCassandra(pid, attachment.systemProperties());
            return new TargetJvm(pid, connect(attachment.startLocalManagementAgent()));
        }
    }

    private static String theOnlyCassandra() throws Failure, IOException {
        // stock options (-XX:+PerfDisableSharedMem) hide Cassandra from the attach API's own list
        List<String> pids =
                LinuxProcess.canBeSeen() ? LinuxProcess.cassandras() : Attachment.running(CassandraDaemon.MAIN_CLASS);
        if (pids.isEmpty()) {
            throw Failure.unreachable(
                    "no Cassandra runs here that this user can see: start it, or run this where it runs");
        }
        if (pids.size() > 1) {
            throw Failure.usage("several Cassandras run here: give one of the pids " + String.join(", ", pids));
        }
        return pids.get(0);
    }

    private static Attachment attach(String pid) throws Failure {
        try {
            return Attachment.to(pid);
        } catch (IOException e) {
            throw Failure.unreachable("process " + pid + " can't be attached to (" + e.getMessage()
                    + "): it hangs, is ending, is no Java, or runs with -XX:+DisableAttachMechanism");
        }
    }

    private static void mustBeCassandra(String pid, Properties systemProperties) throws Failure {
        if (!CassandraDaemon.isIn(systemProperties)) {
            throw Failure.unreachable("JVM " + pid + " is no Cassandra but "
                    + systemProperties.getProperty("sun.java.command", "without a main class")
                    + ": give the pid of a Cassandra");
        }
    }

    @SuppressWarnings("BanJNDI") // the address is one that the JVM itself has just given to its own user
    private static JMXConnector connect(String address) throws IOException {
        return JMXConnectorFactory.connect(new JMXServiceURL(address));
    }

    String pid() {
        return pid;
    }

    /** The agent in the node, or null where there is none, or none that has come up yet. */
    RunningAgent agent() throws IOException {
        return RunningAgent.in(server);
    }

    /** The agent in the node, which must have one. */
    RunningAgent presentAgent() throws Failure, IOException {
        RunningAgent agent = agent();
        if (agent == null) {
            throw Failure.unreachable(
                    "Cassandra " + pid + " has no agent, or has not finished starting: \"attach " + pid + "\" adds it");
        }
        return agent;
    }

    /** Loads the agent's jar into the node, and waits until the agent has come up. */
    RunningAgent load(Path jar) throws Failure, IOException {
        if (LinuxProcess.canBeSeen() && !LinuxProcess.of(pid).sees(jar)) {
            throw Failure.unreachable(
                    "Cassandra " + pid + " does not see " + jar + ", because it runs in a container or has"
                            + " a /tmp of its own: put the jar into Cassandra's lib folder and run this from there");
        }
        VMOption loading = agentLoading();
        if (loading != null && loading.getValue().equals("false")) {
            throw Failure.unreachable("Cassandra " + pid
                    + " runs with -XX:-EnableDynamicAgentLoading, so no agent can be"
                    + " added while it runs: take that option out of jvm-server.options, or put -javaagent:" + jar
                    + " into it, and restart the node");
        }
        try (Attachment attachment = attach(pid)) {
            attachment.loadAgent(jar.toString());
        } catch (IOException e) {
            throw Failure.unreachable("Cassandra " + pid + " did not take the agent " + jar + " (" + e.getMessage()
                    + "): see whether it still runs, and that its user can read the jar");
        }
        return awaitAgent();
    }

    private RunningAgent awaitAgent() throws Failure, IOException {
        long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(AGENT_LIMIT_SECONDS);
        try {
            for (RunningAgent agent = agent(); ; agent = agent()) {
                if (agent != null) {
                    return agent;
                }
                if (System.nanoTime() > limit) {
                    throw Failure.unreachable("Cassandra " + pid + " has taken the agent, which has not come up within "
                            + AGENT_LIMIT_SECONDS + " s: if the node is still starting, see status " + pid
                            + " later; otherwise its log and standard error say why");
                }
                TimeUnit.MILLISECONDS.sleep(POLL_MILLIS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw Failure.unreachable("interrupted while waiting for the agent in Cassandra " + pid);
        }
    }

    /** Whether the node's JVM prints a warning when an agent is added, because nobody has allowed that explicitly. */
    boolean warnsOfAgents() throws IOException {
        RuntimeMXBean runtime = ManagementFactory.getPlatformMXBean(server, RuntimeMXBean.class);
        double java = Double.parseDouble(runtime.getSpecVersion()); // 1.8, 9, 10, and so on
        VMOption loading = agentLoading();
        return java >= FIRST_JAVA_THAT_WARNS && loading != null && loading.getOrigin() == VMOption.Origin.DEFAULT;
    }

    /** The JVM's option, or null where it has none: Java 8, or no HotSpot. */
    private VMOption agentLoading() throws IOException {
        try {
            return ManagementFactory.getPlatformMXBean(server, HotSpotDiagnosticMXBean.class)
                    .getVMOption("EnableDynamicAgentLoading");
        } catch (IllegalArgumentException e) {
            return null;
        }
    }

    @Override
    public void close() throws IOException {
        connector.close();
    }
}
