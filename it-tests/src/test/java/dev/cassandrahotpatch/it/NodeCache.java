/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.IOException;
import java.util.Optional;
import javax.management.Attribute;
import javax.management.JMException;
import javax.management.ObjectName;

/** One of a node's caches, as operators see and set it over JMX. */
final class NodeCache {
    private static final String MEBIBYTES = "CacheCapacityInMB";

    private final CassandraNode node;
    private final String name;

    /**
     * Names a cache.
     *
     * @param name {@code Key} or {@code Counter}
     */
    NodeCache(CassandraNode node, String name) {
        this.node = node;
        this.name = name;
    }

    /** How many entries there are. */
    long entries() {
        return metric("Entries", "Value");
    }

    /** How often an entry was found, since the node was started. */
    long hits() {
        return metric("Hits", "Count");
    }

    /** The capacity that the cache says it has, in bytes. */
    long capacity() {
        return metric("Capacity", "Value");
    }

    void setCapacityInMebibytes(long mebibytes) {
        try {
            node.jmx().setAttribute(caches(), new Attribute(name + MEBIBYTES, mebibytes));
        } catch (JMException | IOException e) {
            throw new IllegalStateException("can't set " + name + MEBIBYTES, e);
        }
    }

    void invalidate() {
        try {
            node.jmx().invoke(caches(), "invalidate" + name + "Cache", new Object[0], new String[0]);
        } catch (JMException | IOException e) {
            throw new IllegalStateException("can't invalidate the cache " + name, e);
        }
    }

    /** Waits until the cache has no entry: evicting them all may take it a moment. */
    void awaitEmpty() {
        node.await("an empty cache " + name, () -> Optional.of(entries()).filter(entries -> entries == 0));
    }

    private long metric(String metric, String attribute) {
        try {
            ObjectName bean =
                    new ObjectName("org.apache.cassandra.metrics:type=Cache,scope=" + name + "Cache,name=" + metric);
            return ((Number) node.jmx().getAttribute(bean, attribute)).longValue();
        } catch (JMException | IOException e) {
            throw new IllegalStateException("can't read " + metric + " of the cache " + name, e);
        }
    }

    private static ObjectName caches() throws JMException {
        return new ObjectName("org.apache.cassandra.db:type=Caches");
    }
}
