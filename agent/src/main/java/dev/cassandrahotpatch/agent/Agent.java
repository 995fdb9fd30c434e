/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import java.lang.instrument.Instrumentation;

/**
 * Where the JVM enters the agent. Whatever goes wrong behind this class ends here, in one line on standard error: a JVM
 * whose agent throws does not start, and a Cassandra node must.
 */
public final class Agent {
    private Agent() {}

    /**
     * Called by the JVM before Cassandra's main method, once for every {@code -javaagent} on the command line.
     *
     * @param arguments what follows {@code =} in the option: the properties without their prefix, comma separated
     */
    public static void premain(String arguments, Instrumentation instrumentation) {
        start(arguments, instrumentation);
    }

    /**
     * Called by the JVM when the agent is attached to a Cassandra that runs already.
     *
     * @param arguments as for {@link #premain}
     */
    public static void agentmain(String arguments, Instrumentation instrumentation) {
        start(arguments, instrumentation);
    }

    /** The version in the jar's manifest. */
    public static String version() {
        String version = Agent.class.getPackage().getImplementationVersion();
        return version == null ? "(unknown version)" : version;
    }

    private static void start(String arguments, Instrumentation instrumentation) {
        try {
            HotPatch.start(arguments, instrumentation);
        } catch (Throwable e) { // also LinkageError: parts of the jar may be missing
            System.err.println("[hotpatch] error: the agent could not start, Cassandra runs unpatched (" + e
                    + "); reinstall cassandra-hotpatch.jar or remove its -javaagent option");
        }
    }
}
