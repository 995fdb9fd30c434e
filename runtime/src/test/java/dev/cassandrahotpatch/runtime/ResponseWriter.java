/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import org.apache.cassandra.io.util.DataOutputBuffer;

/** How a response's bytes reach its buffer. Byte i of every response is {@link #byteAt}, whichever way it is written. */
enum ResponseWriter {
    /** Many small cells: 37 bytes at a time. The buffer doubles. */
    SMALL_PIECES {
        @Override
        void write(DataOutputBuffer buffer, int size) throws IOException {
            for (int at = 0; at < size; at += 37) {
                buffer.write(CONTENT, at & MASK, Math.min(37, size - at));
            }
        }
    },

    /**
     * One row with one large value, as the serialisers of 4.0 to 5.0 write it: the partition's header, the value in one
     * write, then the end of the partition and the end of the response, a byte each. The buffer jumps to just what the
     * value needs, and the last two bytes make it double.
     */
    ONE_LARGE_VALUE {
        @Override
        void write(DataOutputBuffer buffer, int size) throws IOException {
            int header = Math.min(60, size);
            buffer.write(CONTENT, 0, header);
            int value = size - header - 2;
            if (value > 0) {
                // a value is one write of a buffer; content is periodic, so that one array serves every size
                buffer.write(ByteBuffer.wrap(VALUES, 60, value));
            }
            for (int at = Math.max(header, size - 2); at < size; at++) {
                buffer.write(byteAt(at));
            }
        }
    };

    static final int LARGEST = 4_000_000;

    private static final int MASK = 0xffff;
    private static final byte[] CONTENT = content(MASK + 1 + 64);
    private static final byte[] VALUES = content(LARGEST);

    abstract void write(DataOutputBuffer buffer, int size) throws IOException;

    /** Writes a response of this many bytes. */
    void fill(DataOutputBuffer buffer, int size) {
        try {
            write(buffer, size);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static byte byteAt(int index) {
        int i = index & MASK;
        return (byte) (i * 31 + (i >> 8));
    }

    private static byte[] content(int length) {
        byte[] content = new byte[length];
        for (int i = 0; i < length; i++) {
            content[i] = byteAt(i);
        }
        return content;
    }
}
