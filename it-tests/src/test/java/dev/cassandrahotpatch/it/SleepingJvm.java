/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.tools.ToolProvider;

/** A JVM that does nothing until it is closed. It starts in no time, and on every Java, which a Cassandra does not. */
final class SleepingJvm implements AutoCloseable {
    private static final String SLEEPER = """
            package org.example;
            class Sleeper {
                public static void main(String[] arguments) throws Exception {
                    System.out.println("ready");
                    System.in.read(); // until the other end is closed
                }
            }
            """;
    private static final Map<String, String> CASSANDRA = Map.of("CassandraDaemon", """
            package org.apache.cassandra.service;
            class CassandraDaemon {
                public static void main(String[] arguments) throws Exception {
                    java.lang.management.ManagementFactory.getPlatformMBeanServer().registerMBean(
                        new javax.management.timer.Timer(),
                        new javax.management.ObjectName("org.apache.cassandra.db:type=StorageService"));
                    System.out.println("ready");
                    System.in.read(); // until the other end is closed
                }
            }
            """, "StorageService", """
            package org.apache.cassandra.service;
            public class StorageService {
                public static final StorageService instance = new StorageService();
                public boolean isDaemonSetupCompleted() {
                    return true;
                }
            }
            """);

    private final Process process;

    private SleepingJvm(Process process) {
        this.process = process;
    }

    /** Starts a program that has nothing to do with Cassandra. */
    static SleepingJvm other(Path folder) throws IOException {
        return start(java(), compiled(folder, Map.of("Sleeper", SLEEPER)), "org.example.Sleeper");
    }

    /** Starts what looks like a Cassandra that has finished starting, and has none of the classes that are patched. */
    static SleepingJvm cassandra(Path folder, String... options) throws IOException {
        List<String> command = new ArrayList<>(java());
        command.addAll(List.of(options));
        return cassandra(folder, command);
    }

    /**
     * As {@link #cassandra(Path, String...)}, with another java.
     *
     * @param launcher what the command begins with, up to the JVM's options
     */
    static SleepingJvm cassandra(Path folder, List<String> launcher) throws IOException {
        return start(launcher, compiled(folder, CASSANDRA), "org.apache.cassandra.service.CassandraDaemon");
    }

    static List<String> java() {
        return List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    }

    private static SleepingJvm start(List<String> launcher, Path classes, String mainClass) throws IOException {
        List<String> command = new ArrayList<>(launcher);
        command.addAll(List.of("-cp", classes.toString(), mainClass));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        BufferedReader out = process.inputReader(StandardCharsets.UTF_8);
        List<String> before = new ArrayList<>();
        for (String line = out.readLine(); !"ready".equals(line); line = out.readLine()) {
            if (line == null) {
                process.destroyForcibly();
                throw new IOException(command + " has ended and said " + before);
            }
            before.add(line);
        }
        return new SleepingJvm(process);
    }

    private static Path compiled(Path folder, Map<String, String> sources) throws IOException {
        List<String> arguments = new ArrayList<>(List.of("--release", "11", "-d", folder.toString()));
        for (Map.Entry<String, String> source : sources.entrySet()) {
            Path file = folder.resolve(source.getKey() + ".java");
            Files.writeString(file, source.getValue());
            arguments.add(file.toString());
        }
        if (ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new)) != 0) {
            throw new IOException("can't compile " + sources.keySet());
        }
        return folder;
    }

    String pid() {
        return Long.toString(process.pid());
    }

    boolean isAlive() {
        return process.isAlive();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
