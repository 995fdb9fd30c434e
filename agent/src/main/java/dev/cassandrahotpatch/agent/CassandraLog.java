/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.core.status.Status;
import org.slf4j.ILoggerFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Cassandra's own log. Only to be touched once Cassandra has started: whoever asks SLF4J first initialises logback, and
 * that must not be the agent.
 */
final class CassandraLog {
    private static final Logger LOGGER = LoggerFactory.getLogger("org.apache.cassandra.hotpatch");

    private CassandraLog() {}

    static void info(String line) {
        LOGGER.info(line);
    }

    static void warn(String line) {
        LOGGER.warn(line);
    }

    /** Why the lines may not have reached the log, or null where nothing speaks against it. */
    static String problem() {
        if (!LOGGER.isInfoEnabled()) {
            return "the logger " + LOGGER.getName() + " drops INFO";
        }
        ILoggerFactory factory = LoggerFactory.getILoggerFactory();
        if (factory instanceof LoggerContext) {
            for (Status status : ((LoggerContext) factory).getStatusManager().getCopyOfStatusList()) {
                if (status.getEffectiveLevel() >= Status.ERROR) {
                    return "logback says: " + status.getMessage();
                }
            }
        }
        return null;
    }
}
