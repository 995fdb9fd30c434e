/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;

/** Reads class files without loading the classes in them. */
public final class ClassFiles {
    private ClassFiles() {}

    /**
     * Reads a site's class from where a class loader would take it.
     *
     * @return the bytes, or null where the loader has no such class
     */
    public static byte[] read(Site site, ClassLoader loader) throws IOException {
        try (InputStream in = loader.getResourceAsStream(site.resource())) {
            return in == null ? null : read(in);
        }
    }

    /** Reads a stream to its end; closing it is left to the caller. */
    public static byte[] read(InputStream in) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(16 * 1024);
        byte[] part = new byte[8 * 1024];
        for (int count = in.read(part); count >= 0; count = in.read(part)) {
            bytes.write(part, 0, count);
        }
        return bytes.toByteArray();
    }
}
