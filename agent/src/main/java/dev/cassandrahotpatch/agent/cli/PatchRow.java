/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent.cli;

import dev.cassandrahotpatch.transformers.PatchState;
import java.util.Map;

/** What is true of one patch, in one place: a row of a {@link PatchTable}. Immutable. */
final class PatchRow {
    private final String id;
    private final String state;
    private final String ticket;
    private final String reason;
    private final String since;
    private final Map<String, Double> counters;

    /**
     * Makes a row.
     *
     * @param state as the node names it: it may have another version of the agent, with other states
     * @param since when the patch came to that state, or null where nobody knows
     * @param counters what the patch has counted, by name
     */
    PatchRow(String id, String state, String ticket, String reason, String since, Map<String, Double> counters) {
        this.id = id;
        this.state = state;
        this.ticket = ticket;
        this.reason = reason;
        this.since = since;
        this.counters = counters;
    }

    String id() {
        return id;
    }

    String state() {
        return state;
    }

    String ticket() {
        return ticket;
    }

    String reason() {
        return reason;
    }

    String since() {
        return since;
    }

    Map<String, Double> counters() {
        return counters;
    }

    /** Whether the state is one of those. */
    boolean isOneOf(PatchState... states) {
        for (PatchState candidate : states) {
            if (candidate.name().equals(state)) {
                return true;
            }
        }
        return false;
    }
}
