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
 * Where the threads of a node that compact spend their wall time, sampled by async-profiler. It gives the limit of what can be
 * gained by taking something off them. To be used by one thread.
 */
final class CompactionProfile {
    private static final String ASYNC_PROFILER = "tools.profiler:async-profiler:4.2";
    private static final String COMPACTING = "db/compaction/CompactionTask.runMayThrow";
    private static final String FLUSHING = "io/util/SequentialWriter.doFlush";

    private final CassandraNode node;
    private final Path library;
    private final Path stacks;

    /** Begins to sample a node, with files in a folder. */
    CompactionProfile(CassandraNode node, Path folder) throws IOException {
        this.node = node;
        this.library = folder.resolve("libasyncProfiler.so");
        this.stacks = folder.resolve("compaction-" + node.pid() + ".collapsed");
        if (!Files.exists(library)) {
            extract();
        }
        profiler("start,event=wall,interval=1ms");
    }

    private void extract() throws IOException {
        String entry = System.getProperty("os.arch").equals("aarch64") ? "linux-arm64" : "linux-x64";
        try (ZipFile jar = new ZipFile(CassandraRelease.artifact(ASYNC_PROFILER).toFile())) {
            ZipEntry found = jar.getEntry(entry + "/libasyncProfiler.so");
            Files.copy(jar.getInputStream(found), library);
        }
    }

    /**
     * Stops to sample.
     *
     * @return which part of the compacting threads' samples lie in {@code SequentialWriter.doFlush}, which compresses, checksums
     *     and writes a chunk
     */
    double stopAndGetShareOfFlushing() throws IOException {
        profiler("stop,collapsed,file=" + stacks);
        long compacting = 0;
        long flushing = 0;
        for (String line : Files.readAllLines(stacks)) {
            if (line.contains(COMPACTING)) {
                long samples = Long.parseLong(line.substring(line.lastIndexOf(' ') + 1));
                compacting += samples;
                flushing += line.contains(FLUSHING) ? samples : 0;
            }
        }
        if (flushing == 0) {
            throw new IllegalStateException("no sample of " + FLUSHING + " in " + stacks + ", of " + compacting);
        }
        return (double) flushing / compacting;
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
