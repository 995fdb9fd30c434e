/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.nio.ByteBuffer;
import org.apache.cassandra.io.util.DataOutputBuffer;

/**
 * An array that a thread writes one response after the other into; each is copied out before the next begins.
 *
 * <p>Belongs to one thread. It starts small, and is replaced by a larger one, up to a limit, when a response outgrew it.
 */
final class SpareArray {
    private static final int FIRST_BYTES = 16 * 1024;

    private final int mostBytes;
    private int bytes;
    private ByteBuffer buffer;

    /** What is being written into the array, or null. */
    private DataOutputBuffer borrower;

    /** @param mostBytes its largest size; a power of two, so that what outgrows it grows to the sizes that stock has */
    SpareArray(int mostBytes) {
        this.mostBytes = mostBytes;
        this.bytes = Math.min(FIRST_BYTES, mostBytes);
    }

    /** A buffer that begins in this array. */
    DataOutputBuffer lend() {
        // A borrower that is still there never came back, since its read failed, or is in use further up this thread's
        // stack. Either way the old array is left to it.
        if (buffer == null || borrower != null) {
            buffer = ByteBuffer.allocate(bytes);
        } else {
            buffer.clear();
        }
        borrower = new DataOutputBuffer(buffer);
        return borrower;
    }

    boolean isLentTo(DataOutputBuffer candidate) {
        return borrower == candidate;
    }

    /** Whether what was written is still in this array, and not in a larger one. */
    boolean contains(DataOutputBuffer written) {
        return written.getData() == buffer.array();
    }

    int bytes() {
        return bytes;
    }

    /** Lets the next response overwrite the array; this one had {@code size} bytes, and no longer needs it. */
    void takeBack(int size) {
        borrower = null;
        if (size > bytes && bytes < mostBytes) {
            bytes = (int) Math.min(TableSizes.stockCapacity(size), mostBytes);
            buffer = null;
        }
    }
}
