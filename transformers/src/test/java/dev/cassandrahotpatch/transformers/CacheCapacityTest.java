/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;

/** Stock and patched Caffeine 2.9.2, the one of 4.1, side by side. */
class CacheCapacityTest {
    private static final String CAFFEINE = "com.github.benmanes.caffeine.cache";
    private static final String CACHE = "com/github/benmanes/caffeine/cache/BoundedLocalCache";
    private static final String LOCK = "java/util/concurrent/locks/ReentrantLock";
    private static final int KEYS = 50;
    private static final int READS = 1_000;

    private final ExecutorService otherThread = Executors.newSingleThreadExecutor();

    @AfterEach
    void stopTheOtherThread() {
        otherThread.shutdownNow();
    }

    @Test
    void thePatchedCapacityIsReadWhileAnotherThreadHoldsTheEvictionLock() throws Exception {
        Policy stock = new Policy(getClass().getClassLoader());
        Policy patched = new Policy(patchedLoader());

        stock.whileTheEvictionLockIsHeld(() -> {
            Future<Long> capacity = otherThread.submit(stock::capacity);
            return assertThatThrownBy(() -> capacity.get(1, SECONDS))
                    .as("the stock code must wait, or there is nothing to patch")
                    .isInstanceOf(TimeoutException.class);
        });
        patched.whileTheEvictionLockIsHeld(
                () -> assertThat(otherThread.submit(patched::capacity).get(10, SECONDS))
                        .isEqualTo(1_000));
    }

    @Test
    void thePatchedCapacityIsTheStockOneForEveryCapacitySet() throws Exception {
        Policy stock = new Policy(getClass().getClassLoader());
        Policy patched = new Policy(patchedLoader());

        for (long capacity :
                new long[] {0, 1, 1_000, Integer.MAX_VALUE, 1L << 40, Long.MAX_VALUE - 1, Long.MAX_VALUE, 0}) {
            stock.setCapacity(capacity);
            patched.setCapacity(capacity);
            assertThat(patched.capacity()).as("after setCapacity(%d)", capacity).isEqualTo(stock.capacity());
        }
    }

    @Test
    void aCapacityThatAnotherThreadHasSetIsSeenAtOnce() throws Exception {
        Policy patched = new Policy(patchedLoader());

        for (int capacity = 1; capacity <= 20_000; capacity++) {
            long set = capacity;
            otherThread
                    .submit((Callable<Void>) () -> {
                        patched.setCapacity(set);
                        return null;
                    })
                    .get(10, SECONDS);
            assertThat(patched.capacity()).isEqualTo(set);
        }
    }

    @Test
    void anEmptyCacheStillHasItsCapacityAndFills() throws Exception {
        // the ticket's diff asks for size() == 0 instead, which an empty cache never leaves
        Policy patched = new Policy(patchedLoader());

        assertThat(patched.weight()).hasValue(0);
        assertThat(patched.capacity()).isEqualTo(1_000);
        patched.put("key", "value");
        assertThat(patched.weight()).hasValue(10);
    }

    @Test
    void aKeyCacheThatStartsEmptyHasStocksHitsWhileTheTicketsDiffNeverHasOne() throws Exception {
        Policy stock = new Policy(getClass().getClassLoader());
        Policy patched = new Policy(patchedLoader());
        Policy ticket = new Policy(getClass().getClassLoader());

        assertThat(hits(stock, cache -> cache.capacity() != 0)).isEqualTo(READS - KEYS);
        assertThat(hits(patched, cache -> cache.capacity() != 0)).isEqualTo(READS - KEYS);
        assertThat(hits(ticket, cache -> cache.size() != 0)).isZero();
    }

    /** Reads keys in turn and, on a miss, puts the key if the cache is thought to be in use, as SSTableReader does. */
    private static int hits(Policy cache, InUse inUse) throws Exception {
        int hits = 0;
        for (int read = 0; read < READS; read++) {
            Integer key = read % KEYS;
            if (cache.get(key) != null) {
                hits++;
            } else if (inUse.test(cache)) {
                cache.put(key, key);
            }
        }
        return hits;
    }

    private interface InUse {
        boolean test(Policy cache) throws Exception;
    }

    @Test
    void nothingThatThePatchedBodyCallsCanWait() throws Exception {
        Site site = CacheCapacity.PATCH.sites().get(0);
        byte[] stock = ClassBytes.of(site.className());
        byte[] patched = Weaver.weave(stock, List.of(site), Set.of()).classFile();

        assertThat(calls(ClassBytes.method(stock, "getMaximum")))
                .as("stock takes the lock, or there is nothing to patch")
                .contains(LOCK + ".lock", LOCK + ".unlock");
        MethodNode method = ClassBytes.method(patched, "getMaximum");
        assertThat(canBlock(method)).isFalse();
        assertThat(calls(method)).containsExactly(LOCK + ".isLocked", CACHE + ".maximum");
        // what the two calls do: isLocked reads a volatile field of the lock, maximum a field of the cache
        String implementation = new Policy(patchedLoader()).implementationOf("maximum");
        MethodNode maximum = ClassBytes.method(ClassBytes.of(implementation), "maximum");
        assertThat(canBlock(maximum)).isFalse();
        assertThat(calls(maximum)).allMatch(call -> call.startsWith("sun/misc/Unsafe.getLong"));
    }

    private static List<String> calls(MethodNode method) {
        List<String> calls = new ArrayList<>();
        for (AbstractInsnNode instruction : method.instructions) {
            if (instruction instanceof MethodInsnNode call) {
                calls.add(call.owner + "." + call.name);
            }
        }
        return calls;
    }

    private static boolean canBlock(MethodNode method) {
        boolean monitors = Arrays.stream(method.instructions.toArray())
                .anyMatch(instruction -> instruction.getOpcode() == Opcodes.MONITORENTER);
        return monitors || (method.access & Opcodes.ACC_SYNCHRONIZED) != 0;
    }

    @Test
    void thePatchedCapacityIsReadWithoutAllocating() throws Throwable {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        MethodHandle capacity = new Policy(patchedLoader()).capacityHandle();
        long sum = 0;
        for (int i = 0; i < 10_000; i++) {
            sum += (long) capacity.invokeExact();
        }

        long before = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
        for (int i = 0; i < 100_000; i++) {
            sum += (long) capacity.invokeExact();
        }
        long allocated = threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - before;

        assertThat(sum).isEqualTo(110_000L * 1_000);
        assertThat(allocated).as("less than a byte for a hundred reads").isLessThan(1_000);
    }

    private static ClassLoader patchedLoader() {
        return new PatchedClassLoader(CAFFEINE, CacheCapacity.PATCH);
    }

    /** Caffeine's eviction policy of a weighted cache as {@code CaffeineCache} makes it, in one class loader. */
    private static final class Policy {
        private final Object cache;
        private final Object eviction;
        private final Object bounded;
        private final ReentrantLock evictionLock;

        Policy(ClassLoader loader) throws Exception {
            Class<?> builder = Class.forName(CAFFEINE + ".Caffeine", true, loader);
            Class<?> weigher = Class.forName(CAFFEINE + ".Weigher", true, loader);
            Object weighsTen =
                    Proxy.newProxyInstance(loader, new Class<?>[] {weigher}, (proxy, method, arguments) -> 10);
            Object caffeine = builder.getMethod("newBuilder").invoke(null);
            builder.getMethod("maximumWeight", long.class).invoke(caffeine, 1_000L);
            builder.getMethod("weigher", weigher).invoke(caffeine, weighsTen);
            builder.getMethod("executor", Executor.class).invoke(caffeine, (Executor) Runnable::run);
            cache = builder.getMethod("build").invoke(caffeine);
            Object policy = call(cache, "policy");
            eviction = ((Optional<?>) call(policy, "eviction")).orElseThrow();
            bounded = accessible(Class.forName(CAFFEINE + ".BoundedLocalCache$BoundedLocalManualCache", true, loader)
                            .getDeclaredField("cache"))
                    .get(cache);
            evictionLock = (ReentrantLock) accessible(Class.forName(CAFFEINE + ".BoundedLocalCache", true, loader)
                            .getDeclaredField("evictionLock"))
                    .get(bounded);
        }

        void whileTheEvictionLockIsHeld(Callable<?> action) throws Exception {
            evictionLock.lock();
            try {
                action.call();
            } finally {
                evictionLock.unlock();
            }
        }

        long capacity() throws Exception {
            return (long) call(eviction, "getMaximum");
        }

        MethodHandle capacityHandle() throws Exception {
            return MethodHandles.lookup()
                    .unreflect(accessible(eviction.getClass().getMethod("getMaximum")))
                    .bindTo(eviction);
        }

        int size() throws Exception {
            return ((Map<?, ?>) call(cache, "asMap")).size();
        }

        Object get(Object key) throws Exception {
            return accessible(cache.getClass().getMethod("getIfPresent", Object.class))
                    .invoke(cache, key);
        }

        /** The class whose method of this name the cache has. */
        String implementationOf(String method) throws Exception {
            Class<?> type = bounded.getClass();
            while (Arrays.stream(type.getDeclaredMethods())
                    .noneMatch(declared -> declared.getName().equals(method))) {
                type = type.getSuperclass();
            }
            return type.getName();
        }

        void setCapacity(long capacity) throws Exception {
            accessible(eviction.getClass().getMethod("setMaximum", long.class)).invoke(eviction, capacity);
        }

        OptionalLong weight() throws Exception {
            return (OptionalLong) call(eviction, "weightedSize");
        }

        void put(Object key, Object value) throws Exception {
            accessible(cache.getClass().getMethod("put", Object.class, Object.class))
                    .invoke(cache, key, value);
        }

        private static Object call(Object target, String name) throws Exception {
            return accessible(target.getClass().getMethod(name)).invoke(target);
        }

        private static Method accessible(Method method) {
            method.setAccessible(true);
            return method;
        }

        private static Field accessible(Field field) {
            field.setAccessible(true);
            return field;
        }
    }
}
