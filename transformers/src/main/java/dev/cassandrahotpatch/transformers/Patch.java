/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * One performance fix, as data: what it is called, where it goes and what it weaves in. Immutable; the
 * {@link Catalogue} has one of each.
 */
public final class Patch {
    private final String id;
    private final String ticket;
    private final String summary;
    private final boolean onByDefault;
    private final List<Site> sites;
    private final List<Setting> settings;
    private final List<String> runtimeClasses;
    private final String gate;

    private Patch(Builder builder) {
        this.id = builder.id;
        this.ticket = builder.ticket;
        this.summary = builder.summary;
        this.onByDefault = builder.onByDefault;
        this.sites = Collections.unmodifiableList(builder.sites);
        this.settings = Collections.unmodifiableList(builder.settings);
        this.runtimeClasses = Collections.unmodifiableList(builder.runtimeClasses);
        this.gate = builder.gate;
    }

    /** Begins a patch; a patch is on by default unless it says otherwise. */
    static Builder named(String id, String ticket, String summary) {
        return new Builder(id, ticket, summary);
    }

    /** The name that operators use: {@code cassandra.hotpatch.<id>} switches the patch. */
    public String id() {
        return id;
    }

    /** The Cassandra ticket, as {@code CASSANDRA-12345}. */
    public String ticket() {
        return ticket;
    }

    /** One line that says what the patch does. */
    public String summary() {
        return summary;
    }

    /** Whether the patch is on when the operator says nothing. */
    public boolean onByDefault() {
        return onByDefault;
    }

    /** The methods that the patch rewrites: all of them, or none. */
    public List<Site> sites() {
        return sites;
    }

    /** What the operator may set. */
    public List<Setting> settings() {
        return settings;
    }

    /** Our classes that the woven code calls; without them the patch must not be woven. */
    public List<String> runtimeClasses() {
        return runtimeClasses;
    }

    /**
     * Our class whose static methods {@code open()} and {@code close()} make the woven code act and be inert, or null for a
     * patch whose sites may act one by one. Opened once the patch is applied, that is, once every site is in.
     */
    public String gate() {
        return gate;
    }

    /** Whether the patch changes the shape of a class, so that it can only be woven as the class loads. */
    public boolean startOnly() {
        return sites.stream().anyMatch(Site::isWholeClass);
    }

    @Override
    public String toString() {
        return id;
    }

    /** Collects what a patch states; used by one thread, while the catalogue is built. */
    static final class Builder {
        private final String id;
        private final String ticket;
        private final String summary;
        private boolean onByDefault = true;
        private final List<Site> sites = new ArrayList<>();
        private final List<Setting> settings = new ArrayList<>();
        private final List<String> runtimeClasses = new ArrayList<>();
        private String gate;

        private Builder(String id, String ticket, String summary) {
            this.id = id;
            this.ticket = ticket;
            this.summary = summary;
        }

        Builder site(Site site) {
            sites.add(site);
            return this;
        }

        Builder setting(Setting setting) {
            settings.add(setting);
            return this;
        }

        Builder offByDefault() {
            onByDefault = false;
            return this;
        }

        /** Names the runtime class that keeps the woven code inert until every site is in. */
        Builder gate(String runtimeClass) {
            gate = runtimeClass;
            return calls(runtimeClass);
        }

        Builder calls(String runtimeClass) {
            runtimeClasses.add(runtimeClass);
            return this;
        }

        Patch build() {
            return new Patch(this);
        }
    }
}
