/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.nio.ByteBuffer;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.io.util.DataOutputBuffer;

/** placeholder while the skeleton is built. */
public final class ResponseBufferSizes {
    private ResponseBufferSizes() {}

    /** x. */
    public static int initialSize(UnfilteredPartitionIterator partitions) {
        return 128;
    }

    /** x. */
    public static ByteBuffer finish(DataOutputBuffer buffer, UnfilteredPartitionIterator partitions) {
        return buffer.buffer();
    }
}
