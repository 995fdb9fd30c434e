/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import dev.cassandrahotpatch.agent.Agent;
import dev.cassandrahotpatch.agent.Options;
import dev.cassandrahotpatch.transformers.Catalogue;
import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.PatchState;
import dev.cassandrahotpatch.transformers.PatchStatus;
import dev.cassandrahotpatch.transformers.Site;
import dev.cassandrahotpatch.transformers.Verdict;
import dev.cassandrahotpatch.transformers.Weaver;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** Says what the agent would do on a Cassandra that lies on disk: the table that its log would have. */
@Command(
        name = "check",
        description = {
            "Says what would become of each patch on a Cassandra, without starting it.",
            "Takes the node's -D" + Options.PREFIX + "* options into account where they are given to this java, too."
        })
final class CheckCommand implements Callable<Integer> {
    @Parameters(paramLabel = "<target>", description = "A Cassandra home, its lib folder, or one jar.")
    private Path target;

    @ParentCommand
    private Main main;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws Failure {
        Options options = Options.read(null, System.getProperties(), Catalogue.patches());
        List<PatchRow> rows = new ArrayList<>();
        boolean asWanted = true;
        try (CassandraJars jars = CassandraJars.open(target)) {
            boolean found = false;
            for (Patch patch : Catalogue.patches()) {
                Map<Site, Verdict> verdicts = verdicts(patch, jars, options);
                PatchStatus status = PatchStatus.of(patch, verdicts);
                found |= !verdicts.isEmpty();
                PatchRow row = row(status, jars, options);
                rows.add(row);
                asWanted &= !row.isOneOf(PatchState.REFUSED, PatchState.FAILED)
                        && (jars.isSingleJar() || !row.isOneOf(PatchState.WAITING));
            }
            String version = jars.version();
            if (!found && version == null) {
                throw Failure.usage(jars + " is no Cassandra, and no library of it that a patch is for");
            }
            String with = version == null ? jars.toString() : "Cassandra " + version + " (" + jars + ")";
            new PatchTable("A node with Cassandra Hotpatch " + Agent.version() + " and " + with + " would log:", rows)
                    .fact("agent", Agent.version())
                    .fact("cassandra", version)
                    .fact("target", jars.toString())
                    .notes(options.warnings())
                    .print(spec.commandLine(), main.json());
        }
        return asWanted ? ExitCode.FINE : ExitCode.NOT_AS_WANTED;
    }

    /** What is found at a patch's sites; what fits counts as woven, because that is what becomes of it in a node. */
    private static Map<Site, Verdict> verdicts(Patch patch, CassandraJars jars, Options options) {
        Map<Site, Verdict> verdicts = Weaver.judge(patch, jars::classFile, options.accepted(patch));
        verdicts.replaceAll((site, verdict) -> verdict.kind() == Verdict.Kind.FITS ? verdict.woven() : verdict);
        return verdicts;
    }

    private static PatchRow row(PatchStatus status, CassandraJars jars, Options options) {
        boolean elsewhere = status.state() == PatchState.WAITING && jars.isSingleJar();
        String reason = elsewhere
                ? "not found in this jar: " + status.patch().sites() + "; check the lib folder"
                : status.reason();
        String disabledBy = options.disabledBy(status.patch());
        if (disabledBy == null) {
            return new PatchRow(
                    status.patch().id(),
                    status.state().name(),
                    status.patch().ticket(),
                    reason,
                    null,
                    Collections.emptyMap());
        }
        PatchStatus disabled = PatchStatus.disabled(status.patch(), disabledBy);
        return new PatchRow(
                status.patch().id(),
                disabled.state().name(),
                status.patch().ticket(),
                disabled.reason() + "; switched on, it would be " + status.state() + ": " + reason,
                null,
                Collections.emptyMap());
    }
}
