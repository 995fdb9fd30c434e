/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import com.sun.management.ThreadMXBean;
import dev.cassandrahotpatch.it.CassandraNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * What a node's process has used since it was started. It does not depend on what else runs on the machine's cores, the load
 * among it; what threads have used that have ended is missing.
 *
 * @param cpuNanos CPU time of all threads
 * @param allocatedBytes on the heap, by all threads
 * @param gcMillis in which the garbage collector was at work
 * @param contextSwitches of all threads
 */
record ServerCounters(long cpuNanos, long allocatedBytes, long gcMillis, long contextSwitches) {
    static ServerCounters of(CassandraNode node) {
        try {
            ThreadMXBean threads = ManagementFactory.newPlatformMXBeanProxy(
                    node.jmx(), ManagementFactory.THREAD_MXBEAN_NAME, ThreadMXBean.class);
            long allocated = Arrays.stream(threads.getThreadAllocatedBytes(threads.getAllThreadIds()))
                    .filter(bytes -> bytes > 0) // -1 of a thread that has just ended
                    .sum();
            List<GarbageCollectorMXBean> collectors =
                    ManagementFactory.getPlatformMXBeans(node.jmx(), GarbageCollectorMXBean.class);
            long gcMillis = collectors.stream()
                    .mapToLong(GarbageCollectorMXBean::getCollectionTime)
                    .sum();
            ProcessHandle process = ProcessHandle.of(node.pid()).orElseThrow();
            return new ServerCounters(
                    process.info().totalCpuDuration().orElseThrow().toNanos(),
                    allocated,
                    gcMillis,
                    contextSwitches(node.pid()));
        } catch (IOException e) {
            throw new UncheckedIOException("can't ask " + node, e);
        }
    }

    private static long contextSwitches(long pid) throws IOException {
        try (Stream<Path> threads = Files.list(Path.of("/proc", Long.toString(pid), "task"))) {
            return threads.mapToLong(thread -> contextSwitches(thread.resolve("status")))
                    .sum();
        }
    }

    private static long contextSwitches(Path status) {
        try (Stream<String> lines = Files.lines(status)) {
            return lines.filter(line -> line.contains("ctxt_switches"))
                    .mapToLong(line ->
                            Long.parseLong(line.substring(line.indexOf(':') + 1).strip()))
                    .sum();
        } catch (NoSuchFileException ended) {
            return 0;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** What was used since an earlier moment. */
    ServerCounters since(ServerCounters earlier) {
        return new ServerCounters(
                cpuNanos - earlier.cpuNanos,
                allocatedBytes - earlier.allocatedBytes,
                gcMillis - earlier.gcMillis,
                contextSwitches - earlier.contextSwitches);
    }
}
