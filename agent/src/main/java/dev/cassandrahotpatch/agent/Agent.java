/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import java.lang.instrument.Instrumentation;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Where the JVM enters the agent. Whatever goes wrong behind this class ends here, in one line on standard error: a JVM
 * whose agent throws does not start, and a Cassandra node must.
 */
public final class Agent {
    /** Set by the first call, for as long as the JVM lives; a second {@code -javaagent} runs this same class again. */
    private static final AtomicBoolean STARTED = new AtomicBoolean();

    private Agent() {}

    /**
     * Called by the JVM before Cassandra's main method, once for every {@code -javaagent} on the command line.
     *
     * @param arguments what follows {@code =} in the option: the properties without their prefix, comma separated
     */
    public static void premain(String arguments, Instrumentation instrumentation) {
        try {
            if (STARTED.compareAndSet(false, true)) {
                HotPatch.start(arguments, instrumentation);
            } else {
                HotPatch.startedTwice();
            }
        } catch (Throwable e) { // also LinkageError: parts of the jar may be missing
            System.err.println("[hotpatch] error: the agent could not start, Cassandra runs unpatched (" + e
                    + "); reinstall cassandra-hotpatch.jar or remove its -javaagent option");
        }
    }
}
