/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import dev.cassandrahotpatch.transformers.PatchState;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.json.JSONWriter;
import picocli.CommandLine;
import picocli.CommandLine.Help.Ansi;

/** What a command found out about patches: a table for people, or JSON for programs. To be used by one thread. */
final class PatchTable {
    private final String title;
    private final List<PatchRow> rows;
    private final Map<String, Object> facts = new LinkedHashMap<>();
    private final List<String> notes = new ArrayList<>();

    PatchTable(String title, List<PatchRow> rows) {
        this.title = title;
        this.rows = rows;
    }

    /** Adds what the title says to people, for programs. */
    PatchTable fact(String key, Object value) {
        facts.put(key, value);
        return this;
    }

    /** Adds sentences that belong to no patch. */
    PatchTable notes(List<String> sentences) {
        notes.addAll(sentences);
        return this;
    }

    /** Prints the table to where the command prints to. */
    void print(CommandLine command, boolean json) {
        if (json) {
            printJson(command.getOut());
        } else {
            printText(command.getOut(), command.getColorScheme().ansi());
        }
        command.getOut().flush();
    }

    private void printText(PrintWriter out, Ansi ansi) {
        out.println(title);
        int width = rows.stream().mapToInt(row -> row.id().length()).max().orElse(0);
        for (PatchRow row : rows) {
            String since = row.since() == null ? "" : " since " + row.since();
            out.println();
            out.printf("%-" + width + "s  %s  %s%s%n", row.id(), coloured(row, ansi), row.ticket(), since);
            out.println("    " + row.reason());
            if (row.isOneOf(PatchState.APPLIED)) {
                row.counters().forEach((name, value) -> out.println("    " + name + " " + number(value)));
            }
        }
        if (!notes.isEmpty()) {
            out.println();
            notes.forEach(out::println);
        }
    }

    /** Whole numbers without a fraction, seconds with three digits of one. */
    private static String number(double value) {
        return value == Math.rint(value)
                ? String.format(Locale.ROOT, "%,.0f", value)
                : String.format(Locale.ROOT, "%,.3f", value);
    }

    private static String coloured(PatchRow row, Ansi ansi) {
        String state = String.format("%-14s", row.state()); // as long as the longest, RESTART_NEEDED
        switch (row.state()) {
            case "APPLIED":
                return ansi.string("@|green " + state + "|@");
            case "WAITING":
                return ansi.string("@|yellow " + state + "|@");
            case "REFUSED":
            case "FAILED":
            case "RESTART_NEEDED":
                return ansi.string("@|bold,red " + state + "|@");
            default:
                return state;
        }
    }

    private void printJson(PrintWriter out) {
        JSONWriter json = new JSONWriter(out).object();
        facts.forEach((key, value) -> json.key(key).value(value));
        json.key("patches").array();
        for (PatchRow row : rows) {
            json.object();
            json.key("id").value(row.id());
            json.key("state").value(row.state());
            json.key("ticket").value(row.ticket());
            json.key("reason").value(row.reason());
            if (row.since() != null) {
                json.key("since").value(row.since());
            }
            if (!row.counters().isEmpty()) {
                json.key("counters").value(row.counters());
            }
            json.endObject();
        }
        json.endArray().key("notes").value(notes).endObject();
        out.println();
    }
}
