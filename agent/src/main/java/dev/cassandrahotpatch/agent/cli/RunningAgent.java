/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import dev.cassandrahotpatch.agent.HotPatchMXBean;
import dev.cassandrahotpatch.agent.PatchMXBean;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import javax.management.JMX;
import javax.management.MBeanServerConnection;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;

/** The agent in a node, through its MBeans. What can't be asked any more ends in an exception of the proxies. */
final class RunningAgent {
    private final MBeanServerConnection server;
    private final HotPatchMXBean hotPatch;

    private RunningAgent(MBeanServerConnection server) {
        this.server = server;
        this.hotPatch = JMX.newMXBeanProxy(server, name(HotPatchMXBean.OBJECT_NAME), HotPatchMXBean.class);
    }

    /** The agent behind a connection, or null where there is none, or none that has come up yet. */
    static RunningAgent in(MBeanServerConnection server) throws IOException {
        return server.isRegistered(name(HotPatchMXBean.OBJECT_NAME)) ? new RunningAgent(server) : null;
    }

    String version() {
        return hotPatch.getVersion();
    }

    List<String> warnings() {
        return hotPatch.getWarnings();
    }

    List<PatchRow> rows() {
        List<PatchRow> rows = new ArrayList<>();
        for (String id : hotPatch.getPatches()) {
            rows.add(row(id, patch(id)));
        }
        return rows;
    }

    /** Has something done to one patch, and says what has become of it. */
    PatchRow change(String id, Consumer<PatchMXBean> change) throws Failure {
        if (!hotPatch.getPatches().contains(id)) {
            throw Failure.usage("there is no patch " + id + " in this node's agent; it has "
                    + String.join(", ", hotPatch.getPatches()));
        }
        PatchMXBean patch = patch(id);
        change.accept(patch);
        return row(id, patch);
    }

    private PatchMXBean patch(String id) {
        return JMX.newMXBeanProxy(server, name(PatchMXBean.OBJECT_NAME_PREFIX + id), PatchMXBean.class);
    }

    private static PatchRow row(String id, PatchMXBean patch) {
        return new PatchRow(
                id, patch.getState(), patch.getTicket(), patch.getReason(), patch.getSince(), patch.getCounters());
    }

    private static ObjectName name(String name) {
        try {
            return new ObjectName(name);
        } catch (MalformedObjectNameException e) {
            throw new IllegalArgumentException(name, e);
        }
    }
}
