/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What the agent last said of each patch, read from a log or from what a node printed. Immutable.
 *
 * @param header the table's first line, or null where there is none
 * @param rows the patches by their ids, in the table's order
 */
public record HotpatchTable(String header, Map<String, Row> rows) {
    private static final Pattern HEADER =
            Pattern.compile("\\[hotpatch\\] (Cassandra Hotpatch .*, (\\d+) patch(?:es)?\\b.*)$", Pattern.MULTILINE);
    private static final Pattern ROW =
            Pattern.compile("\\[hotpatch\\] ([a-z_]+) ([A-Z_]+) \\((CASSANDRA-\\d+)\\) (.*)$", Pattern.MULTILINE);

    /**
     * The agent's line about one patch.
     *
     * @param state one of the agent's states, as {@code APPLIED}
     * @param ticket the Cassandra ticket
     * @param reason why the patch is in that state
     */
    public record Row(String state, String ticket, String reason) {}

    /** Reads the last line about each patch. */
    public static HotpatchTable in(String text) {
        Matcher header = HEADER.matcher(text);
        Map<String, Row> rows = new LinkedHashMap<>();
        Matcher row = ROW.matcher(text);
        while (row.find()) {
            rows.put(
                    row.group(1),
                    new Row(row.group(2), row.group(3), row.group(4).strip()));
        }
        return new HotpatchTable(header.find() ? header.group(1) : null, rows);
    }

    /** Whether the header is there, and as many patches as it promises. */
    public boolean isComplete() {
        if (header == null) {
            return false;
        }
        Matcher promised = HEADER.matcher("[hotpatch] " + header);
        return promised.find() && rows.size() >= Integer.parseInt(promised.group(2));
    }

    /** The line about a patch. */
    public Row row(String id) {
        Row row = rows.get(id);
        if (row == null) {
            throw new AssertionError("the table says nothing of " + id + ", only of " + rows.keySet());
        }
        return row;
    }

    /** The state of a patch. */
    public String state(String id) {
        return row(id).state();
    }

    /** The reason for a patch's state. */
    public String reason(String id) {
        return row(id).reason();
    }
}
