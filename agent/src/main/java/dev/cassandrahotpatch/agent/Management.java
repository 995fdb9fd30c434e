/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.PatchStatus;
import java.lang.management.ManagementFactory;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** The agent's MBeans. Registered once Cassandra has started: the platform's MBean server must be Cassandra's to set up. */
final class Management {
    private Management() {}

    /** Registers the agent and its patches; what goes wrong is one line in Cassandra's log. */
    static void register(HotPatch hotPatch) {
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            for (Patch patch : hotPatch.patches()) {
                server.registerMBean(
                        new PatchBean(hotPatch, patch), new ObjectName(PatchMXBean.OBJECT_NAME_PREFIX + patch.id()));
            }
            // last: whoever finds this one finds the others
            server.registerMBean(new HotPatchBean(hotPatch), new ObjectName(HotPatchMXBean.OBJECT_NAME));
        } catch (JMException e) {
            CassandraLog.warn(Report.MARK + "warning: the agent can't be seen over JMX (" + e
                    + "); the patches run all the same");
        }
    }

    private static final class HotPatchBean implements HotPatchMXBean {
        private final HotPatch hotPatch;

        HotPatchBean(HotPatch hotPatch) {
            this.hotPatch = hotPatch;
        }

        @Override
        public String getVersion() {
            return Agent.version();
        }

        @Override
        public List<String> getPatches() {
            List<String> ids = new ArrayList<>();
            hotPatch.patches().forEach(patch -> ids.add(patch.id()));
            return ids;
        }

        @Override
        public List<String> getTable() {
            List<String> table = new ArrayList<>();
            for (PatchStatus status : hotPatch.board().statuses()) {
                table.add(status.toString());
            }
            return table;
        }

        @Override
        public List<String> getWarnings() {
            return hotPatch.warnings();
        }
    }

    private static final class PatchBean implements PatchMXBean {
        private final HotPatch hotPatch;
        private final Patch patch;

        PatchBean(HotPatch hotPatch, Patch patch) {
            this.hotPatch = hotPatch;
            this.patch = patch;
        }

        @Override
        public String getState() {
            return hotPatch.board().status(patch).state().name();
        }

        @Override
        public String getReason() {
            return hotPatch.board().status(patch).reason();
        }

        @Override
        public String getSince() {
            return hotPatch.board().since(patch).truncatedTo(ChronoUnit.MILLIS).toString();
        }

        @Override
        public String getTicket() {
            return patch.ticket();
        }

        @Override
        public String getSummary() {
            return patch.summary();
        }

        @Override
        public Map<String, Double> getCounters() {
            return PatchMeter.valuesOf(patch);
        }

        @Override
        public String enable() {
            return hotPatch.enable(patch).toString();
        }

        @Override
        public String disable() {
            return hotPatch.disable(patch, "an operator, over JMX; enable() or a restart brings it back")
                    .toString();
        }
    }
}
