/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The state of one patch and the reason for it. Immutable.
 */
public final class PatchStatus {
    private final Patch patch;
    private final PatchState state;
    private final String reason;

    private PatchStatus(Patch patch, PatchState state, String reason) {
        this.patch = patch;
        this.state = state;
        this.reason = reason;
    }

    /** A patch that the operator switched off, with the property that did it. */
    public static PatchStatus disabled(Patch patch, String by) {
        return new PatchStatus(patch, PatchState.DISABLED, "switched off by " + by);
    }

    /** A patch that can't be applied to, or removed from, the running node. */
    public static PatchStatus restartNeeded(Patch patch, String reason) {
        return new PatchStatus(patch, PatchState.RESTART_NEEDED, reason);
    }

    /** A patch that could not even be looked at. */
    public static PatchStatus failed(Patch patch, String reason) {
        return new PatchStatus(patch, PatchState.FAILED, reason);
    }

    /**
     * Derives a patch's state from what was found at its sites: the worst finding decides, and only a patch whose every
     * site is woven is applied.
     *
     * @param verdicts the findings so far; a site without one has not been seen
     */
    public static PatchStatus of(Patch patch, Map<Site, Verdict> verdicts) {
        Verdict.Kind worst = Verdict.Kind.WOVEN;
        List<Site> missing = new ArrayList<>();
        for (Site site : patch.sites()) {
            Verdict verdict = verdicts.get(site);
            if (verdict == null) {
                if (!site.isOptional()) {
                    missing.add(site);
                }
            } else if (verdict.kind().compareTo(worst) < 0) {
                worst = verdict.kind();
            }
        }
        if (!missing.isEmpty() && worst.compareTo(Verdict.Kind.NOT_NEEDED) > 0) {
            return new PatchStatus(patch, PatchState.WAITING, "not found on the class path: " + missing);
        }
        return new PatchStatus(patch, stateOf(worst), reasonOf(worst, patch, verdicts));
    }

    private static PatchState stateOf(Verdict.Kind worst) {
        switch (worst) {
            case FAILED:
                return PatchState.FAILED;
            case REFUSED:
                return PatchState.REFUSED;
            case NOT_NEEDED:
                return PatchState.NOT_NEEDED;
            case FITS:
                return PatchState.WAITING;
            case WOVEN:
                return PatchState.APPLIED;
        }
        throw new IllegalArgumentException("no state for " + worst);
    }

    private static String reasonOf(Verdict.Kind worst, Patch patch, Map<Site, Verdict> verdicts) {
        List<String> reasons = new ArrayList<>();
        for (Site site : patch.sites()) {
            Verdict verdict = verdicts.get(site);
            boolean onlyChecked = worst == Verdict.Kind.WOVEN && site.places() == 0;
            if (verdict == null || verdict.kind() != worst || onlyChecked) {
                continue;
            }
            String reason = verdict.reason();
            if (worst == Verdict.Kind.FITS) {
                reason = "known: " + site + " of " + reason + "; patched as soon as its class loads";
            } else if (worst == Verdict.Kind.WOVEN) {
                reason = "patched " + site + " of " + reason;
            }
            if (!reasons.contains(reason)) {
                reasons.add(reason);
            }
        }
        return String.join(", ", reasons);
    }

    /** The patch that this is about. */
    public Patch patch() {
        return patch;
    }

    /** Its state. */
    public PatchState state() {
        return state;
    }

    /** Why it is in that state, in plain words. */
    public String reason() {
        return reason;
    }

    /** The line that operators see: {@code <id> <STATE> (<ticket>) <reason>}. */
    @Override
    public String toString() {
        return patch.id() + " " + state + " (" + patch.ticket() + ") " + reason;
    }
}
