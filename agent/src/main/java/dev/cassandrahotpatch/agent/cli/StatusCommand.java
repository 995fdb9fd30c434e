/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import dev.cassandrahotpatch.transformers.PatchState;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** Says what is true of every patch in a node now. */
@Command(
        name = "status",
        description = {
            "Says which patches run in a running Cassandra, and why.",
            "Run it as Cassandra's user, with a JDK."
        })
final class StatusCommand implements Callable<Integer> {
    @Parameters(
            arity = "0..1",
            paramLabel = "<pid>",
            description = "Cassandra's process id; not needed where one runs.")
    private Long pid;

    @ParentCommand
    private Main main;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws Failure, IOException {
        try (TargetJvm jvm = TargetJvm.open(pid)) {
            RunningAgent agent = jvm.presentAgent();
            String title = "Cassandra " + jvm.pid() + " has Cassandra Hotpatch " + agent.version() + ".";
            return print(title, jvm, agent, Collections.emptyList(), spec.commandLine(), main.json());
        }
    }

    /** Prints the agent's table, and gives back the exit code that it amounts to. */
    static int print(
            String title, TargetJvm jvm, RunningAgent agent, List<String> notes, CommandLine command, boolean json) {
        List<PatchRow> rows = agent.rows();
        List<String> allNotes = new ArrayList<>(agent.warnings());
        allNotes.addAll(notes);
        new PatchTable(title, rows)
                .fact("pid", Long.valueOf(jvm.pid()))
                .fact("agent", agent.version())
                .notes(allNotes)
                .print(command, json);
        boolean asWanted = rows.stream()
                .noneMatch(row -> row.isOneOf(PatchState.REFUSED, PatchState.FAILED, PatchState.RESTART_NEEDED));
        return asWanted ? ExitCode.FINE : ExitCode.NOT_AS_WANTED;
    }
}
