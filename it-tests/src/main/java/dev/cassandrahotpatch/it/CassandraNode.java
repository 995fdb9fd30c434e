/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodType;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * One real Cassandra node: a process of its own, started from a release's jars with the options that the stock scripts
 * would give it, in a folder of its own and on free ports of the loopback interface. To be used by one thread.
 *
 * <p>{@link #close()} stops the process and deletes its folder; where the system property {@code nodes.folder} names a
 * folder, the node lives in there and its configuration and logs stay. No node outlives this JVM.
 */
public final class CassandraNode implements AutoCloseable {
    private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();
    private static final Duration START_LIMIT = Duration.ofMinutes(4);
    private static final Duration STOP_LIMIT = Duration.ofSeconds(20);
    private static final Duration REQUEST_LIMIT = Duration.ofSeconds(30);
    private static final long POLL_MILLIS = 50;
    private static final int TAIL_LINES = 40;

    /** Processes that have not been stopped yet; written by the threads that use nodes, read by the shutdown hook. */
    private static final Set<Process> RUNNING = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> RUNNING.forEach(Process::destroyForcibly), "stop-nodes"));
    }

    private final CassandraRelease release;
    private final Path folder;
    private final Path logFolder;
    private final int cqlPort = freePort();
    private final int storagePort = freePort();
    private final int jmxPort = freePort();
    private final long started;
    private final Process process;
    private CqlSession cql;
    private JMXConnector jmx;

    private CassandraNode(Builder builder) {
        this.release = builder.release;
        try {
            this.folder = newFolder(release);
            this.logFolder = builder.logFolder == null ? folder.resolve("logs") : builder.logFolder;
            writeConfiguration(builder);
            this.started = System.nanoTime();
            this.process = new ProcessBuilder(command(builder))
                    .directory(folder.toFile())
                    .redirectOutput(folder.resolve("stdout.txt").toFile())
                    .redirectError(folder.resolve("stderr.txt").toFile())
                    .start();
            RUNNING.add(process);
        } catch (IOException e) {
            throw new UncheckedIOException("can't start " + release, e);
        }
    }

    /** Begins a node of a release; {@link Builder#start()} starts it. */
    public static Builder of(CassandraRelease release) {
        return new Builder(release);
    }

    /** How a node is to be started. To be used by one thread. */
    public static final class Builder {
        private final CassandraRelease release;
        private final List<String> beforeJamm = new ArrayList<>();
        private final List<String> afterJamm = new ArrayList<>();
        private final List<Path> classPathFirst = new ArrayList<>();
        private final List<String> yaml = new ArrayList<>();
        private Path javaHome = Path.of(System.getProperty("java.home"));
        private Path logFolder;
        private String heap = "1g";

        private Builder(CassandraRelease release) {
            this.release = release;
        }

        /** Runs the node on another Java than this JVM's. */
        public Builder javaHome(Path newJavaHome) {
            javaHome = newJavaHome;
            return this;
        }

        /** Adds JVM options ahead of jamm's {@code -javaagent}. */
        public Builder beforeJamm(String... options) {
            beforeJamm.addAll(List.of(options));
            return this;
        }

        /** Adds JVM options behind jamm's {@code -javaagent}. */
        public Builder afterJamm(String... options) {
            afterJamm.addAll(List.of(options));
            return this;
        }

        /** Puts a jar or a folder in front of the release's class path. */
        public Builder classPathFirst(Path path) {
            classPathFirst.add(path);
            return this;
        }

        /** Adds a line to {@code cassandra.yaml}. */
        public Builder yaml(String line) {
            yaml.add(line);
            return this;
        }

        /** Has the node log to another folder than its own, which {@link CassandraNode#close()} leaves alone. */
        public Builder logFolder(Path newLogFolder) {
            logFolder = newLogFolder;
            return this;
        }

        /** Sets the heap, as {@code -Xmx} takes it; 1 GiB otherwise. */
        public Builder heap(String newHeap) {
            heap = newHeap;
            return this;
        }

        /** Starts the process and returns at once. */
        public CassandraNode start() {
            return new CassandraNode(this);
        }
    }

    /**
     * Waits until the node takes clients.
     *
     * @return how long that took since the process was started
     */
    public Duration awaitCql() {
        return await("the port for CQL", () -> {
            try (Socket socket = new Socket()) {
                socket.connect(new InetSocketAddress(LOOPBACK, cqlPort), 1_000);
                return Optional.of(Duration.ofNanos(System.nanoTime() - started));
            } catch (IOException notYet) {
                return Optional.empty();
            }
        });
    }

    /** Waits until the agent's table is in {@code system.log}, with a line for each patch. */
    public HotpatchTable awaitTable() {
        return await(
                "the agent's table in system.log",
                () -> Optional.of(HotpatchTable.in(log())).filter(HotpatchTable::isComplete));
    }

    /**
     * Waits for something to be true of this node; fails, with the end of its log, when the node dies or it takes too long.
     *
     * @param what what is waited for, for the failure's message
     * @param condition empty as long as it is not there
     */
    public <T> T await(String what, Supplier<Optional<T>> condition) {
        long limit = System.nanoTime() + START_LIMIT.toNanos();
        while (true) {
            boolean alive = process.isAlive();
            Optional<T> found = condition.get();
            if (found.isPresent()) {
                return found.get();
            }
            if (!alive) {
                throw new IllegalStateException(
                        this + " has ended with " + process.exitValue() + " before " + what + " was there" + tails());
            }
            if (System.nanoTime() > limit) {
                throw new IllegalStateException(
                        this + " has had " + START_LIMIT.toSeconds() + " s without " + what + tails());
            }
            try {
                TimeUnit.MILLISECONDS.sleep(POLL_MILLIS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted while waiting for " + what, e);
            }
        }
    }

    /** A session of the Java driver, that is opened once and closed with the node. */
    public CqlSession cql() {
        if (cql == null) {
            cql = connect(cqlAddress());
        }
        return cql;
    }

    /**
     * Opens a session of the Java driver, with limits that suit a busy machine.
     *
     * @param contactPoint where a node of {@code datacenter1} takes clients
     */
    public static CqlSession connect(InetSocketAddress contactPoint) {
        return CqlSession.builder()
                .addContactPoint(contactPoint)
                .withLocalDatacenter("datacenter1")
                .withConfigLoader(DriverConfigLoader.programmaticBuilder()
                        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, REQUEST_LIMIT)
                        .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, REQUEST_LIMIT)
                        .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, REQUEST_LIMIT)
                        .withDuration(DefaultDriverOption.CONNECTION_CONNECT_TIMEOUT, REQUEST_LIMIT)
                        // the driver would wait a second for more schema changes after each
                        .withBoolean(DefaultDriverOption.METADATA_SCHEMA_ENABLED, false)
                        // and two to say good-bye
                        .withInt(DefaultDriverOption.NETTY_IO_SHUTDOWN_QUIET_PERIOD, 0)
                        .withInt(DefaultDriverOption.NETTY_ADMIN_SHUTDOWN_QUIET_PERIOD, 0)
                        .build())
                .build();
    }

    /** Where the node takes CQL clients. */
    public InetSocketAddress cqlAddress() {
        return new InetSocketAddress(LOOPBACK, cqlPort);
    }

    /** The node's MBeans, over a connection that is opened once and closed with the node. */
    @SuppressWarnings("BanJNDI") // the other end is our own process, on the loopback interface
    public MBeanServerConnection jmx() {
        try {
            if (jmx == null) {
                jmx = JMXConnectorFactory.connect(new JMXServiceURL(
                        "service:jmx:rmi:///jndi/rmi://" + LOOPBACK.getHostAddress() + ":" + jmxPort + "/jmxrmi"));
            }
            return jmx.getMBeanServerConnection();
        } catch (IOException e) {
            throw new UncheckedIOException("no JMX from " + this + tails(), e);
        }
    }

    /**
     * Calls an operation of an MBean, as nodetool does.
     *
     * @param bean the MBean's name
     * @param arguments booleans, ints and longs stand for primitive parameters, every set for a {@code Set}
     * @throws IllegalStateException if there is no such operation or it fails
     */
    public Object invoke(String bean, String operation, Object... arguments) {
        String[] signature = Stream.of(arguments)
                .map(argument -> argument instanceof Set ? Set.class : argument.getClass())
                .map(type -> MethodType.methodType(type).unwrap().returnType().getName())
                .toArray(String[]::new);
        try {
            return jmx().invoke(new ObjectName(bean), operation, arguments, signature);
        } catch (JMException | IOException e) {
            throw new IllegalStateException(operation + " has failed on " + this + ": " + e, e);
        }
    }

    /** The text of {@code system.log} so far; empty where there is none. */
    public String log() {
        return text(logFolder.resolve("system.log"));
    }

    /** What the process has written to standard output so far. */
    public String stdout() {
        return text(folder.resolve("stdout.txt"));
    }

    /** What the process has written to standard error so far. */
    public String stderr() {
        return text(folder.resolve("stderr.txt"));
    }

    /** The release that runs here. */
    public CassandraRelease release() {
        return release;
    }

    /** The process's id. */
    public long pid() {
        return process.pid();
    }

    /** Whether the process still runs. */
    public boolean isAlive() {
        return process.isAlive();
    }

    /** Stops the node as an operator would, by force if that does not help, and cleans up after it. */
    @Override
    public void close() {
        try {
            if (cql != null) {
                cql.close();
            }
        } finally {
            stop();
        }
        try {
            if (jmx != null) {
                jmx.close();
            }
        } catch (IOException expected) {
            // the other end has just gone: there is nobody left to say good-bye to
        }
        deleteFolder();
    }

    private void stop() {
        try {
            process.destroy();
            if (!process.waitFor(STOP_LIMIT.toSeconds(), TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
            RUNNING.remove(process);
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    private void deleteFolder() {
        Path doomed = System.getProperty("nodes.folder") == null ? folder : folder.resolve("data");
        try (Stream<Path> paths = Files.walk(doomed)) {
            for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        } catch (IOException e) {
            throw new UncheckedIOException("can't delete " + doomed, e);
        }
    }

    @Override
    public String toString() {
        return release + " in " + folder;
    }

    private String tails() {
        return tail("stderr", stderr()) + tail("stdout", stdout()) + tail("system.log", log());
    }

    private static String tail(String name, String text) {
        List<String> lines = text.lines().toList();
        return lines.subList(Math.max(0, lines.size() - TAIL_LINES), lines.size()).stream()
                .collect(Collectors.joining("\n  ", "\n" + name + " ends with:\n  ", ""));
    }

    private static String text(Path file) {
        try {
            return Files.isRegularFile(file) ? new String(Files.readAllBytes(file), StandardCharsets.UTF_8) : "";
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static Path newFolder(CassandraRelease release) throws IOException {
        Path parent = Path.of(System.getProperty("nodes.folder", System.getProperty("java.io.tmpdir")));
        Files.createDirectories(parent);
        Path folder = Files.createTempDirectory(parent, "cassandra-" + release.version() + "-");
        for (String inside : List.of("conf", "data", "data/tmp", "logs")) {
            Files.createDirectory(folder.resolve(inside));
        }
        return folder;
    }

    private void writeConfiguration(Builder builder) throws IOException {
        String yaml = """
                cluster_name: hotpatch
                num_tokens: 1
                partitioner: org.apache.cassandra.dht.Murmur3Partitioner
                commitlog_sync: periodic
                commitlog_sync_period_in_ms: 10000
                auto_snapshot: false
                endpoint_snitch: SimpleSnitch
                seed_provider:
                  - class_name: org.apache.cassandra.locator.SimpleSeedProvider
                    parameters:
                      - seeds: "%1$s:%2$d"
                listen_address: %1$s
                storage_port: %2$d
                rpc_address: %1$s
                native_transport_port: %3$d
                """.formatted(LOOPBACK.getHostAddress(), storagePort, cqlPort);
        Files.writeString(
                folder.resolve("conf/cassandra.yaml"),
                builder.yaml.stream().collect(Collectors.joining("\n", yaml, "\n")));
        // as stock: a rolling file and standard output; the pattern is one that logback 1.2 and 1.5 both take
        Files.writeString(folder.resolve("conf/logback.xml"), """
                <configuration scan="true" scanPeriod="60 seconds">
                  <appender name="SYSTEMLOG" class="ch.qos.logback.core.rolling.RollingFileAppender">
                    <file>${cassandra.logdir}/system.log</file>
                    <rollingPolicy class="ch.qos.logback.core.rolling.SizeAndTimeBasedRollingPolicy">
                      <fileNamePattern>${cassandra.logdir}/system.log.%d{yyyy-MM-dd}.%i.zip</fileNamePattern>
                      <maxFileSize>50MB</maxFileSize>
                    </rollingPolicy>
                    <encoder>
                      <pattern>%-5level [%thread] %date{ISO8601} %F:%L - %msg%n</pattern>
                    </encoder>
                  </appender>
                  <appender name="STDOUT" class="ch.qos.logback.core.ConsoleAppender">
                    <encoder>
                      <pattern>%-5level [%thread] %date{ISO8601} %F:%L - %msg%n</pattern>
                    </encoder>
                  </appender>
                  <root level="INFO">
                    <appender-ref ref="SYSTEMLOG"/>
                    <appender-ref ref="STDOUT"/>
                  </root>
                </configuration>
                """);
    }

    private List<String> command(Builder builder) throws IOException {
        int java = featureVersion(builder.javaHome);
        List<String> command = new ArrayList<>();
        command.add(builder.javaHome.resolve("bin/java").toString());
        // stock options that bear on agents: assertions, small stacks, and the modules that are opened
        command.addAll(List.of("-ea", "-Xss512k", "-Xms" + builder.heap, "-Xmx" + builder.heap));
        command.addAll(List.of("-Djava.net.preferIPv4Stack=true", "-XX:+UseTLAB", "-XX:+PerfDisableSharedMem"));
        command.addAll(openModules());
        if (java >= 12 && java < 24) { // 4.x installs a security manager; from 24 on there is none to install
            command.add("-Djava.security.manager=allow");
        }
        // a node that is alone has nobody to wait for, neither at its start nor at its end; the last of equal
        // properties counts
        command.add("-Dcassandra.ring_delay_ms=0");
        command.add("-Dcassandra.skip_wait_for_gossip_to_settle=0");
        command.add("-Dcassandra.superuser_setup_delay_ms=0");
        command.add("-Dcassandra.shutdown_announce_in_ms=0");
        command.add("-Dcassandra.config.allow_system_properties=true");
        command.add("-Dcassandra.settings.discovery_timeout=0s");
        command.addAll(builder.beforeJamm);
        command.add("-javaagent:" + release.jar("jamm"));
        command.addAll(builder.afterJamm);
        command.add(
                "-Dcassandra.config=" + folder.resolve("conf/cassandra.yaml").toUri());
        command.add("-Dcassandra.storagedir=" + folder.resolve("data"));
        command.add("-Djava.io.tmpdir=" + folder.resolve("data/tmp"));
        command.add("-Dcassandra.logdir=" + logFolder);
        command.add("-Dlogback.configurationFile=logback.xml");
        command.add("-Dcassandra.jmx.local.port=" + jmxPort);
        command.add("-Dcassandra-foreground=yes"); // otherwise Cassandra closes the standard streams
        command.add("-cp");
        command.add(Stream.of(builder.classPathFirst, List.of(folder.resolve("conf")), release.jars())
                .flatMap(List::stream)
                .map(Path::toString)
                .collect(Collectors.joining(File.pathSeparator)));
        command.add("org.apache.cassandra.service.CassandraDaemon");
        return command;
    }

    /** The JVM options by which Cassandra reaches into the JDK. */
    public static List<String> openModules() {
        return Stream.of(
                        Stream.of("lang", "lang.ref", "lang.reflect", "lang.module", "io", "nio", "net")
                                .map(name -> "java.base/java." + name),
                        Stream.of("util", "util.concurrent", "util.concurrent.atomic")
                                .map(name -> "java.base/java." + name),
                        Stream.of("misc", "ref", "loader", "reflect", "math", "module", "util", "util.jar")
                                .map(name -> "java.base/jdk.internal." + name),
                        Stream.of(
                                "java.base/sun.nio.ch",
                                "java.rmi/sun.rmi.registry",
                                "java.rmi/sun.rmi.server",
                                "java.rmi/sun.rmi.transport.tcp",
                                "java.management.rmi/com.sun.jmx.remote.internal.rmi",
                                "java.sql/java.sql",
                                "jdk.management/com.sun.management.internal"))
                .flatMap(packages -> packages)
                .flatMap(name -> Stream.of("--add-opens", "--add-exports").map(option -> option + "=" + name))
                .map(option -> option + "=ALL-UNNAMED")
                .toList();
    }

    private static int featureVersion(Path javaHome) throws IOException {
        if (javaHome.equals(Path.of(System.getProperty("java.home")))) {
            return Runtime.version().feature();
        }
        try (Stream<String> lines = Files.lines(javaHome.resolve("release"))) {
            return lines.filter(line -> line.startsWith("JAVA_VERSION="))
                    .map(line -> Runtime.Version.parse(line.replaceAll("^JAVA_VERSION=|\"", "")))
                    .map(Runtime.Version::feature)
                    .findFirst()
                    .orElseThrow(() -> new IOException(javaHome + " does not say which Java it is"));
        }
    }

    /** A port that nobody listens on, below those that the system gives to clients, so that none takes it meanwhile. */
    private static int freePort() {
        return IntStream.generate(() -> ThreadLocalRandom.current().nextInt(10_000, 30_000))
                .limit(100)
                .filter(CassandraNode::isFree)
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("no free port on " + LOOPBACK));
    }

    private static boolean isFree(int port) {
        try (ServerSocket socket = new ServerSocket(port, 1, LOOPBACK)) {
            return socket.isBound();
        } catch (IOException taken) {
            return false;
        }
    }
}
