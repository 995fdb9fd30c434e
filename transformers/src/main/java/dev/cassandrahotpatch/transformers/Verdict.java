/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

/**
 * What the {@link Weaver} found at one site of a class. Immutable.
 */
public final class Verdict {
    /** The kinds of finding, from the one that decides a patch's state first to the one that decides last. */
    public enum Kind {
        /** Reading or rewriting the class went wrong. */
        FAILED,
        /** The body is not one that we know. */
        REFUSED,
        /** The body does not have the problem. */
        NOT_NEEDED,
        /** The body is known and can be patched. */
        FITS,
        /** The patched body is what the JVM has been given. */
        WOVEN
    }

    private final Kind kind;
    private final String reason;

    private Verdict(Kind kind, String reason) {
        this.kind = kind;
        this.reason = reason;
    }

    /** Reading or rewriting went wrong: {@code what} says what was being done. */
    public static Verdict failed(String what, Throwable error) {
        return new Verdict(Kind.FAILED, what + ": " + error + "; the stock code runs");
    }

    static Verdict refused(String reason) {
        return new Verdict(Kind.REFUSED, reason);
    }

    static Verdict notNeeded(String reason) {
        return new Verdict(Kind.NOT_NEEDED, reason);
    }

    static Verdict fits(String releases) {
        return new Verdict(Kind.FITS, releases);
    }

    /** The same finding, once the JVM has been given the rewritten class. */
    public Verdict woven() {
        if (kind != Kind.FITS) {
            throw new IllegalStateException("only what fits can be woven, not " + this);
        }
        return new Verdict(Kind.WOVEN, reason);
    }

    /** The same refusal with what the caller knows of its cause. */
    public Verdict because(String cause) {
        return new Verdict(kind, reason + "; " + cause);
    }

    /** What was found. */
    public Kind kind() {
        return kind;
    }

    /** Why, in plain words; for a body that fits, the releases that are known to have it. */
    public String reason() {
        return reason;
    }

    @Override
    public String toString() {
        return kind + " (" + reason + ")";
    }
}
