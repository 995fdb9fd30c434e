/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import dev.cassandrahotpatch.agent.Agent;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** Adds the agent to a node that runs. */
@Command(
        name = "attach",
        description = {
            "Adds the agent to a running Cassandra, until that is restarted.",
            "Run it as Cassandra's user, with a JDK. The node opens this jar where it lies: leave it there."
        })
final class AttachCommand implements Callable<Integer> {
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
        Path jar = OwnJar.path();
        try (TargetJvm jvm = TargetJvm.open(pid)) {
            List<String> notes = new ArrayList<>();
            RunningAgent agent = jvm.agent();
            boolean present = agent != null;
            if (!present) {
                agent = jvm.load(jar);
                notes.add("It ends with the node's process: to keep it, add -javaagent:" + jar
                        + " to jvm-server.options.");
                if (jvm.warnsOfAgents()) {
                    notes.add(
                            "The node's JVM has printed \"WARNING: A Java agent has been loaded dynamically\": this was"
                                    + " that agent, and all is well. -XX:+EnableDynamicAgentLoading in jvm-server.options keeps"
                                    + " it quiet.");
                }
            }
            // asked of an agent that was just loaded, too: another operator may have been faster
            if (!agent.version().equals(Agent.version())) {
                throw Failure.notAsWanted("Cassandra " + jvm.pid() + " runs the agent's version " + agent.version()
                        + ", and a JVM can't have two: for version " + Agent.version()
                        + ", restart the node with -javaagent:" + jar);
            }
            String title = present
                    ? "Cassandra " + jvm.pid() + " has Cassandra Hotpatch " + agent.version()
                            + " already: nothing was done."
                    : "Cassandra " + jvm.pid() + " now has Cassandra Hotpatch " + agent.version() + ".";
            return StatusCommand.print(title, jvm, agent, notes, spec.commandLine(), main.json());
        }
    }
}
