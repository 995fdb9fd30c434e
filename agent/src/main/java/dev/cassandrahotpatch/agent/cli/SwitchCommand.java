/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import dev.cassandrahotpatch.agent.PatchMXBean;
import dev.cassandrahotpatch.transformers.PatchState;
import java.io.IOException;
import java.util.Collections;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** Adds one patch to a node that runs, or takes it out. */
abstract class SwitchCommand implements Callable<Integer> {
    @Parameters(index = "0", paramLabel = "<pid>", description = "Cassandra's process id.")
    private Long pid;

    @Parameters(index = "1", paramLabel = "<id>", description = "The patch's id, as list has it.")
    private String id;

    @ParentCommand
    private Main main;

    @Spec
    private CommandSpec spec;

    /** Does it, and waits until it is done. */
    abstract void change(PatchMXBean patch);

    /** Whether a patch in that state is what was asked for. */
    abstract boolean isAsWanted(PatchRow row);

    @Override
    public final Integer call() throws Failure, IOException {
        try (TargetJvm jvm = TargetJvm.open(pid)) {
            RunningAgent agent = jvm.presentAgent();
            PatchRow row = agent.change(id, this::change);
            new PatchTable("Cassandra " + jvm.pid() + " now has:", Collections.singletonList(row))
                    .fact("pid", Long.valueOf(jvm.pid()))
                    .fact("agent", agent.version())
                    .print(spec.commandLine(), main.json());
            return isAsWanted(row) ? ExitCode.FINE : ExitCode.NOT_AS_WANTED;
        }
    }

    /** Adds a patch. */
    @Command(
            name = "enable",
            description = {
                "Adds one patch to a running Cassandra that has the agent.",
                "It lasts until the node is restarted."
            })
    static final class Enable extends SwitchCommand {
        @Override
        void change(PatchMXBean patch) {
            patch.enable();
        }

        @Override
        boolean isAsWanted(PatchRow row) {
            return row.isOneOf(PatchState.APPLIED, PatchState.WAITING, PatchState.NOT_NEEDED);
        }
    }

    /** Takes a patch out. */
    @Command(
            name = "disable",
            description = {
                "Takes one patch out of a running Cassandra: the stock code runs again.",
                "It lasts until the patch is enabled or the node is restarted."
            })
    static final class Disable extends SwitchCommand {
        @Override
        void change(PatchMXBean patch) {
            patch.disable();
        }

        @Override
        boolean isAsWanted(PatchRow row) {
            // refused and not needed are fine: what counts is that the stock code runs
            return !row.isOneOf(PatchState.APPLIED, PatchState.WAITING, PatchState.RESTART_NEEDED);
        }
    }
}
