/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import static org.objectweb.asm.Opcodes.ALOAD;
import static org.objectweb.asm.Opcodes.GETFIELD;
import static org.objectweb.asm.Opcodes.INVOKEVIRTUAL;
import static org.objectweb.asm.Opcodes.LRETURN;
import static org.objectweb.asm.Opcodes.POP;

import org.objectweb.asm.tree.MethodNode;

/**
 * CASSANDRA-19429: reads a cache's capacity without Caffeine's eviction lock.
 *
 * <p>Every read that touches the key cache, and every counter read and write, asks for a capacity only to see that it is
 * not 0. All those calls end in Caffeine's {@code getMaximum}, which takes the lock that evictions hold, to read one
 * field. So the one method to mend is that one: the field stays the only place where the capacity is kept, and every
 * caller profits. Caffeine itself dropped the lock in 3.2.3.
 *
 * <p>Why the value is right: {@code setMaximum} writes the field before it releases the lock, which is a volatile write of
 * the lock's state. The woven code first reads that state ({@code isLocked}), which is a volatile read. A call that begins
 * after {@code setMaximum} has returned therefore sees the new maximum.
 */
final class CacheCapacity {
    private static final String CAFFEINE = "com/github/benmanes/caffeine/cache/";
    private static final String CACHE = CAFFEINE + "BoundedLocalCache";
    private static final String POLICY = CACHE + "$BoundedPolicy";
    private static final String EVICTION = POLICY + "$BoundedEviction";
    private static final String LOCK = "java/util/concurrent/locks/ReentrantLock";

    static final Patch PATCH = Patch.named(
                    "cache_capacity", "CASSANDRA-19429", "reads cache capacities without Caffeine's eviction lock")
            .site(Site.of(EVICTION.replace('/', '.'), "getMaximum", "()J")
                    .patch("c1148b67d7aeb64486146409a82e0ea2", "Caffeine 2.9.2, as in 4.1")
                    .patch("6f72173fc15cdd68aa0cdb29cf6acd64", "Caffeine 3.1.8, as in 5.0 and 6.0")
                    .notNeeded(
                            "95718c5c843ecf82779392cad31936d5",
                            "this Caffeine (2.3.5 or 2.5.6, as in 4.0) reads the capacity without a lock")
                    .rewrite(1, CacheCapacity::readWithoutTheLock))
            .build();

    private CacheCapacity() {}

    private static int readWithoutTheLock(MethodNode method) {
        method.instructions.clear();
        method.tryCatchBlocks.clear();
        method.localVariables = null;
        loadCache(method);
        method.visitFieldInsn(GETFIELD, CACHE, "evictionLock", "L" + LOCK + ";");
        method.visitMethodInsn(INVOKEVIRTUAL, LOCK, "isLocked", "()Z", false);
        method.visitInsn(POP);
        loadCache(method);
        method.visitMethodInsn(INVOKEVIRTUAL, CACHE, "maximum", "()J", false);
        method.visitInsn(LRETURN);
        return 1;
    }

    private static void loadCache(MethodNode method) {
        method.visitVarInsn(ALOAD, 0);
        method.visitFieldInsn(GETFIELD, EVICTION, "this$0", "L" + POLICY + ";");
        method.visitFieldInsn(GETFIELD, POLICY, "cache", "L" + CACHE + ";");
    }
}
