/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks.node;

import com.sun.tools.attach.AgentInitializationException;
import com.sun.tools.attach.AgentLoadException;
import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import dev.cassandrahotpatch.it.CassandraNode;
import dev.cassandrahotpatch.it.CassandraRelease;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Times, call by call, what the threads of a node that compact spend on writing chunks. It gives the limit of what can be gained
 * by taking that off them. To be used by one thread.
 *
 * <p>Not sampled: on a virtual machine a profiler's signal arrives late, most often when the thread next makes a system call.
 * As {@code doFlush} makes most of them, samples gave it too much.
 *
 * <p>Tracing has what calls the method compiled anew, and it may stay slower than it was. So only {@code doFlush} itself is timed
 * here; what is to be compared with stock has to be measured before.
 */
final class CompactionTrace {
    private static final String ASYNC_PROFILER = "tools.profiler:async-profiler:4.2";
    private static final String FLUSHING = "org.apache.cassandra.io.util.SequentialWriter.doFlush";
    private static final String THREADS = "[CompactionExecutor:";

    private final CassandraNode node;
    private final Path library;
    private final Path totals;

    /** Prepares to trace a node, with files in a folder. */
    CompactionTrace(CassandraNode node, Path folder) throws IOException {
        this.node = node;
        this.library = folder.resolve("libasyncProfiler.so");
        this.totals = folder.resolve("compaction-" + node.pid() + ".collapsed");
        if (!Files.exists(library)) {
            extract();
        }
    }

    private void extract() throws IOException {
        String entry = System.getProperty("os.arch").equals("aarch64") ? "linux-arm64" : "linux-x64";
        try (ZipFile jar = new ZipFile(CassandraRelease.artifact(ASYNC_PROFILER).toFile())) {
            ZipEntry found = jar.getEntry(entry + "/libasyncProfiler.so");
            Files.copy(jar.getInputStream(found), library);
        }
    }

    /** Begins to time calls. */
    void start() throws IOException {
        profiler("start,threads,jstackdepth=1,trace=" + FLUSHING);
    }

    /**
     * Stops to time calls.
     *
     * @return seconds that compacting threads have spent in {@code SequentialWriter.doFlush}, which compresses, checksums and
     *     writes a chunk
     */
    double stopAndGetSecondsOfFlushing() throws IOException {
        profiler("stop,collapsed,total,file=" + totals);
        long nanos = 0;
        for (String line : Files.readAllLines(totals)) { // a thread, the method, nanoseconds
            if (line.startsWith(THREADS)) {
                nanos += Long.parseLong(line.substring(line.lastIndexOf(' ') + 1));
            }
        }
        if (nanos == 0) {
            throw new IllegalStateException(totals + " has no call of " + FLUSHING + " by " + THREADS);
        }
        return nanos / 1e9;
    }

    private void profiler(String command) throws IOException {
        try {
            VirtualMachine jvm = VirtualMachine.attach(Long.toString(node.pid()));
            try {
                jvm.loadAgentPath(library.toString(), command);
            } finally {
                jvm.detach();
            }
        } catch (AttachNotSupportedException | AgentLoadException | AgentInitializationException e) {
            throw new IOException("async-profiler can't " + command + " in " + node, e);
        }
    }
}
