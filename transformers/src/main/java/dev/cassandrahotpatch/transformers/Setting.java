/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

/**
 * A number that an operator may set for a patch, as {@code -Dcassandra.hotpatch.<patch id>.<name>=<value>}. Immutable.
 */
public final class Setting {
    private final String name;
    private final long defaultValue;
    private final long least;
    private final long most;
    private final String description;

    /**
     * Describes a setting.
     *
     * @param least the smallest value that is accepted
     * @param most the largest value that is accepted
     */
    public Setting(String name, long defaultValue, long least, long most, String description) {
        this.name = name;
        this.defaultValue = defaultValue;
        this.least = least;
        this.most = most;
        this.description = description;
    }

    /** The name, without the patch's id. */
    public String name() {
        return name;
    }

    /** The value that holds when the operator gives none, or one that is out of range. */
    public long defaultValue() {
        return defaultValue;
    }

    /** The smallest value that is accepted. */
    public long least() {
        return least;
    }

    /** The largest value that is accepted. */
    public long most() {
        return most;
    }

    /** One line for the operator, with the unit. */
    public String description() {
        return description;
    }
}
