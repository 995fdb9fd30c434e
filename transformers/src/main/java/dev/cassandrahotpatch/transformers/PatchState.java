/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

/** What can be true of a patch; it is always exactly one of these. */
public enum PatchState {
    /** The patched code is what runs. */
    APPLIED,
    /** The target class has not been loaded yet. */
    WAITING,
    /** The operator switched the patch off. */
    DISABLED,
    /** This Cassandra never had the problem, or has the fix. */
    NOT_NEEDED,
    /** The method found is not one that we know. */
    REFUSED,
    /** An error while patching; the stock code runs. */
    FAILED,
    /** The patch can't be applied to, or removed from, a running node. */
    RESTART_NEEDED
}
