/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.util.NoSuchElementException;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.marshal.BytesType;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;

/** A result of no partitions, which knows its table: all that is asked of what {@code build} gets. */
final class FakePartitions implements UnfilteredPartitionIterator {
    static {
        DatabaseDescriptor.clientInitialization(false);
    }

    private static final AtomicLong TABLES = new AtomicLong();

    private final TableMetadata table;

    private FakePartitions(TableMetadata table) {
        this.table = table;
    }

    /** Of a new table: each call makes one with an id of its own, as CREATE TABLE does. */
    static FakePartitions ofNewTable() {
        return new FakePartitions(
                TableMetadata.builder("ks", "t", TableId.fromUUID(new UUID(0, TABLES.incrementAndGet())))
                        .partitioner(Murmur3Partitioner.instance)
                        .addPartitionKeyColumn("k", BytesType.instance)
                        .build());
    }

    @Override
    public TableMetadata metadata() {
        return table;
    }

    @Override
    public boolean hasNext() {
        return false;
    }

    @Override
    public UnfilteredRowIterator next() {
        throw new NoSuchElementException();
    }

    @Override
    public void close() {}
}
