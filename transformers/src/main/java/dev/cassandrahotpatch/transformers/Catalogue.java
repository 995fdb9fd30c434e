/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** All the patches, in the order in which operators see them. */
public final class Catalogue {
    private static final List<Patch> PATCHES = Collections.unmodifiableList(Arrays.asList(
            CacheCapacity.PATCH, ConnectionRequestCounter.PATCH, ResponseBufferSizing.PATCH, AsyncSSTableWriter.PATCH));

    private Catalogue() {}

    /** The patches. */
    public static List<Patch> patches() {
        return PATCHES;
    }
}
