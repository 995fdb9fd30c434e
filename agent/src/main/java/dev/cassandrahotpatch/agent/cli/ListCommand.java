/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import dev.cassandrahotpatch.agent.Agent;
import dev.cassandrahotpatch.agent.Options;
import dev.cassandrahotpatch.transformers.Catalogue;
import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.Setting;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import org.json.JSONWriter;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;

/** Says which patches there are and how they are switched and set. */
@Command(name = "list", description = "Lists the patches, their tickets, defaults and properties.")
final class ListCommand implements Callable<Integer> {
    @ParentCommand
    private Main main;

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        PrintWriter out = spec.commandLine().getOut();
        if (main.json()) {
            printJson(out);
        } else {
            printText(out);
        }
        out.flush();
        return ExitCode.FINE;
    }

    private static void printText(PrintWriter out) {
        for (Patch patch : Catalogue.patches()) {
            out.println(
                    patch.id() + "  " + patch.ticket() + "  " + (patch.onByDefault() ? "on" : "off") + " by default");
            out.println("    " + patch.summary());
            out.println("    -D" + property(patch) + "=true|false");
            for (Setting setting : patch.settings()) {
                out.println("    -D" + property(patch, setting) + "=<" + setting.least() + " to " + setting.most()
                        + ">, default " + setting.defaultValue() + ": " + setting.description());
            }
            out.println();
        }
        out.println("-D" + Options.PREFIX + "enabled=false switches all of them off.");
        out.println("-D" + Options.PREFIX + "<id>.accept=<fingerprint> vouches for a method body that was refused.");
        out.println("-D" + Options.PREFIX + "scope=all acts in JVMs that are no Cassandra daemon, too.");
        out.println("As agent arguments, without " + Options.PREFIX
                + ": -javaagent:cassandra-hotpatch.jar=<id>=false,... A system property wins.");
    }

    private static void printJson(PrintWriter out) {
        JSONWriter json = new JSONWriter(out).object();
        json.key("agent").value(Agent.version());
        json.key("patches").array();
        for (Patch patch : Catalogue.patches()) {
            json.object();
            json.key("id").value(patch.id());
            json.key("ticket").value(patch.ticket());
            json.key("summary").value(patch.summary());
            json.key("property").value(property(patch));
            json.key("default").value(patch.onByDefault());
            json.key("settings").array();
            for (Setting setting : patch.settings()) {
                json.object();
                json.key("property").value(property(patch, setting));
                json.key("default").value(setting.defaultValue());
                json.key("least").value(setting.least());
                json.key("most").value(setting.most());
                json.key("description").value(setting.description());
                json.endObject();
            }
            json.endArray().endObject();
        }
        json.endArray().endObject();
        out.println();
    }

    private static String property(Patch patch) {
        return Options.PREFIX + patch.id();
    }

    private static String property(Patch patch, Setting setting) {
        return property(patch) + "." + setting.name();
    }
}
