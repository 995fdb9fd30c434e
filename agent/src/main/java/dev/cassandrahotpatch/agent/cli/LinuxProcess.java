/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import dev.cassandrahotpatch.agent.CassandraDaemon;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A process as Linux shows it in {@code /proc}. Looked at before anything is attached, because attaching sends a signal
 * that ends what is no JVM, and because what fails later fails without saying why. Immutable but for what the process does.
 */
final class LinuxProcess {
    private static final Path PROC = Paths.get("/proc");
    private static final int SIGQUIT = 3;

    private final Path folder;
    private final Map<String, String> status;

    private LinuxProcess(Path folder) throws IOException {
        this.folder = folder;
        this.status = new HashMap<>();
        for (String line : Files.readAllLines(folder.resolve("status"), StandardCharsets.ISO_8859_1)) {
            String[] keyAndValue = line.split(":", 2);
            if (keyAndValue.length == 2) {
                status.put(keyAndValue[0], keyAndValue[1].trim());
            }
        }
    }

    /** Whether this system has a {@code /proc} as Linux has it. */
    static boolean canBeSeen() {
        return Files.isRegularFile(PROC.resolve("self/status"));
    }

    /** The process with that id. */
    static LinuxProcess of(String pid) throws Failure {
        return of(PROC, pid);
    }

    /** As {@link #of(String)}, in a folder that looks like {@code /proc}. */
    static LinuxProcess of(Path proc, String pid) throws Failure {
        try {
            return new LinuxProcess(proc.resolve(pid));
        } catch (IOException e) {
            throw Failure.unreachable("there is no process " + pid);
        }
    }

    /** The ids of the processes that are Cassandra nodes. */
    static List<String> cassandras() throws IOException {
        List<String> pids = new ArrayList<>();
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(PROC, "[0-9]*")) {
            for (Path process : processes) {
                String pid = process.getFileName().toString();
                try {
                    LinuxProcess candidate = of(pid);
                    if (candidate.name().equals("java")
                            && candidate.commandLine().contains(CassandraDaemon.MAIN_CLASS)) {
                        pids.add(pid);
                    }
                } catch (Failure | IOException e) {
                    // it has ended meanwhile, so it is none
                }
            }
        }
        return pids;
    }

    /** Makes sure that this is a JVM which the given process, this command, can attach to. */
    void mustBeOpenTo(LinuxProcess self) throws Failure {
        if (isInOtherContainerThan(self)) {
            throw Failure.unreachable(this + " runs in a container, which can't be reached into from outside: run this"
                    + " command inside (docker exec -u <user> <container> ...), with a JDK and with this jar in there; it is"
                    + " process " + lastOf("NSpid") + " there");
        }
        if (!effectiveUserAndGroup().equals(self.effectiveUserAndGroup())) {
            throw Failure.unreachable(
                    this + " belongs to " + owner() + ", and only that user may attach to it: run this"
                            + " command as that user (sudo -u " + owner() + " ...)");
        }
        if (!isJvm()) {
            throw Failure.unreachable(
                    this + " is no Java process that can be attached to: give the pid of a Cassandra");
        }
        if (hasAttachDisabled()) {
            throw Failure.unreachable(
                    this + " runs with -XX:+DisableAttachMechanism, so nothing can be attached to it: take"
                            + " that option out of jvm-server.options, or put -javaagent:<this jar> into it, and restart the node");
        }
    }

    /** Whether the process finds the same file under the same name: it may have another root or a /tmp of its own. */
    boolean sees(Path file) throws IOException {
        Path seen = folder.resolve("root" + file);
        return Files.exists(seen) && Files.isSameFile(seen, file);
    }

    private boolean isInOtherContainerThan(LinuxProcess self) {
        return depth() != self.depth() || namespacesDiffer("pid", self) || namespacesDiffer("net", self);
    }

    /** How many namespaces of process ids are nested here; unlike the namespaces themselves, every user may see it. */
    private int depth() {
        return status.getOrDefault("NSpid", "").split("\\s+", -1).length;
    }

    private boolean namespacesDiffer(String kind, LinuxProcess self) {
        try {
            return !namespace(kind).equals(self.namespace(kind));
        } catch (IOException e) {
            return false; // another user's, which has a reason of its own, or a kernel without namespaces
        }
    }

    private Path namespace(String kind) throws IOException {
        return Files.readSymbolicLink(folder.resolve("ns").resolve(kind));
    }

    private List<String> effectiveUserAndGroup() {
        return Arrays.asList(effective("Uid"), effective("Gid"));
    }

    /** The second of the ids that the kernel lists: real, effective, saved, of the file system. */
    private String effective(String ids) {
        String[] all = status.getOrDefault(ids, "").split("\\s+", -1);
        return all.length > 1 ? all[1] : "";
    }

    private String owner() {
        try {
            return Files.getOwner(folder).getName();
        } catch (IOException e) {
            return "user " + effective("Uid");
        }
    }

    /** Whether HotSpot is in there, and far enough to take the signal by which one attaches. */
    private boolean isJvm() {
        try {
            boolean hotSpot = new String(Files.readAllBytes(folder.resolve("maps")), StandardCharsets.ISO_8859_1)
                    .contains("/libjvm.so");
            return hotSpot && new BigInteger(status.getOrDefault("SigCgt", "0"), 16).testBit(SIGQUIT - 1);
        } catch (IOException e) {
            return false;
        }
    }

    private boolean hasAttachDisabled() {
        try {
            List<String> options = commandLine();
            return options.lastIndexOf("-XX:+DisableAttachMechanism")
                    > options.lastIndexOf("-XX:-DisableAttachMechanism");
        } catch (IOException e) {
            return false; // attaching will say
        }
    }

    private List<String> commandLine() throws IOException {
        String all = new String(Files.readAllBytes(folder.resolve("cmdline")), StandardCharsets.ISO_8859_1);
        return all.isEmpty() ? Collections.emptyList() : Arrays.asList(all.split("\0"));
    }

    private String name() {
        return status.getOrDefault("Name", "");
    }

    private String lastOf(String key) {
        String value = status.getOrDefault(key, "");
        return value.substring(value.lastIndexOf('\t') + 1);
    }

    @Override
    public String toString() {
        return "process " + folder.getFileName() + " (" + name() + ")";
    }
}
