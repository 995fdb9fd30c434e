/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import java.util.concurrent.TimeUnit;
import javax.management.MBeanServer;
import javax.management.MBeanServerFactory;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import org.apache.cassandra.service.StorageService;

/** Waits for Cassandra to have started, without being what initialises any class of it. */
final class CassandraStart {
    private static final long POLL_MILLIS = 100;

    private CassandraStart() {}

    /**
     * Returns once the daemon's setup has completed: commit log replayed, ring joined, about to listen for clients.
     *
     * @param meanwhile what to do about ten times a second until then
     * @throws InterruptedException if the calling thread is interrupted
     */
    static void await(Runnable meanwhile) throws InterruptedException {
        while (!hasStorageService() || !StorageServiceAccess.setupCompleted()) {
            meanwhile.run();
            TimeUnit.MILLISECONDS.sleep(POLL_MILLIS);
        }
    }

    /**
     * Whether the storage service has registered itself. Asks only MBean servers that exist: making the platform's own
     * before Cassandra does could change how it is set up.
     */
    private static boolean hasStorageService() {
        try {
            ObjectName name = new ObjectName("org.apache.cassandra.db:type=StorageService");
            for (MBeanServer server : MBeanServerFactory.findMBeanServer(null)) {
                if (server.isRegistered(name)) {
                    return true;
                }
            }
            return false;
        } catch (MalformedObjectNameException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Apart, so that {@code StorageService} is first touched when it exists; then its fields can be read safely. */
    private static final class StorageServiceAccess {
        static boolean setupCompleted() {
            return StorageService.instance.isDaemonSetupCompleted();
        }
    }
}
