/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import dev.cassandrahotpatch.transformers.Patch;
import dev.cassandrahotpatch.transformers.PatchState;
import dev.cassandrahotpatch.transformers.PatchStatus;
import dev.cassandrahotpatch.transformers.Site;
import dev.cassandrahotpatch.transformers.Verdict;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * What is true of every patch now. Written by the thread that starts the agent and by the threads that load Cassandra's
 * classes, read by those that report; all methods hold this object's monitor, and none of them is on a hot path.
 */
final class PatchBoard {
    private final Map<Patch, PatchStatus> fixed = new HashMap<>();
    private final Map<Patch, Map<Site, Verdict>> verdicts = new LinkedHashMap<>();
    private final Map<Patch, Instant> since = new HashMap<>();
    private Consumer<PatchStatus> listener = status -> {};

    PatchBoard(List<Patch> patches) {
        for (Patch patch : patches) {
            verdicts.put(patch, new HashMap<>());
            since.put(patch, Instant.now());
        }
    }

    /** Fixes a state that does not come from what was found at the patch's sites. */
    synchronized void fix(PatchStatus status) {
        change(status.patch(), () -> fixed.put(status.patch(), status));
    }

    /** Takes back what {@link #fix} has fixed: what was found at the patch's sites decides again. */
    synchronized void unfix(Patch patch) {
        change(patch, () -> fixed.remove(patch));
    }

    /** Replaces all that was known of a patch by what was found at its sites now. */
    synchronized void lookedAt(Patch patch, Map<Site, Verdict> found) {
        change(patch, () -> {
            fixed.remove(patch);
            verdicts.put(patch, new HashMap<>(found));
        });
    }

    /** Records a finding, and tells the listener if the patch's state changes by it. */
    synchronized void record(Patch patch, Site site, Verdict verdict) {
        change(patch, () -> verdicts.get(patch).put(site, verdict));
    }

    private void change(Patch patch, Runnable update) {
        PatchStatus before = status(patch);
        update.run();
        PatchStatus now = status(patch);
        if (now.state() != before.state()) {
            since.put(patch, Instant.now());
            moveGate(patch, before.state(), now.state());
            listener.accept(status(patch));
        }
    }

    /** Lets the woven code of a patch with a gate act when, and only as long as, every site of it is in. */
    private void moveGate(Patch patch, PatchState before, PatchState now) {
        String move = now == PatchState.APPLIED ? "open" : before == PatchState.APPLIED ? "close" : null;
        if (patch.gate() == null || move == null) {
            return;
        }
        try {
            Class.forName(patch.gate()).getMethod(move).invoke(null);
        } catch (ReflectiveOperationException | LinkageError e) {
            fix(PatchStatus.failed(patch, "can't " + move + " " + patch.gate() + " (" + e + ")"));
        }
    }

    /** When the patch came to the state that it is in. */
    synchronized Instant since(Patch patch) {
        return since.get(patch);
    }

    synchronized PatchStatus status(Patch patch) {
        PatchStatus status = fixed.get(patch);
        return status != null ? status : PatchStatus.of(patch, verdicts.get(patch));
    }

    /** Whether a site was found to fit, or was woven, when it was last looked at. */
    synchronized boolean fits(Patch patch, Site site) {
        Verdict verdict = verdicts.get(patch).get(site);
        return verdict != null && (verdict.kind() == Verdict.Kind.FITS || verdict.kind() == Verdict.Kind.WOVEN);
    }

    /** Whether any site of the patch is woven. */
    synchronized boolean hasWoven(Patch patch) {
        return verdicts.get(patch).values().stream().anyMatch(verdict -> verdict.kind() == Verdict.Kind.WOVEN);
    }

    synchronized List<PatchStatus> statuses() {
        List<PatchStatus> statuses = new ArrayList<>();
        for (Patch patch : verdicts.keySet()) {
            statuses.add(status(patch));
        }
        return statuses;
    }

    /** The statuses as of now; every later change of a state goes to the listener, so that none is missed between. */
    synchronized List<PatchStatus> statusesThenChangesTo(Consumer<PatchStatus> newListener) {
        listener = Objects.requireNonNull(newListener);
        return statuses();
    }
}
