/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import java.util.Properties;

/** How to tell a Cassandra daemon from other programs, in this JVM, in another one and in a jar. */
public final class CassandraDaemon {
    /** The daemon's main class. */
    public static final String MAIN_CLASS = "org.apache.cassandra.service.CassandraDaemon";
    /** Where the main class is on the class path. */
    public static final String RESOURCE = "org/apache/cassandra/service/CassandraDaemon.class";

    private CassandraDaemon() {}

    /** Whether the JVM that has these system properties runs the daemon. */
    public static boolean isIn(Properties systemProperties) {
        // set by the java launcher: main class and arguments; absent where there is no main class, as in the JVM that
        // bin/cassandra runs first (CASSANDRA-7254)
        String command = systemProperties.getProperty("sun.java.command", "");
        return command.equals(MAIN_CLASS) || command.startsWith(MAIN_CLASS + " ");
    }
}
