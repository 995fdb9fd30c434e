/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Stock and patched Caffeine 2.9.2, the one of 4.1, side by side. */
class CacheCapacityTest {
    private static final String CAFFEINE = "com.github.benmanes.caffeine.cache";

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

    private static ClassLoader patchedLoader() {
        return new PatchedClassLoader(CAFFEINE, CacheCapacity.PATCH);
    }

    /** Caffeine's eviction policy of a weighted cache as {@code CaffeineCache} makes it, in one class loader. */
    private static final class Policy {
        private final Object cache;
        private final Object eviction;
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
            Field bounded =
                    accessible(Class.forName(CAFFEINE + ".BoundedLocalCache$BoundedLocalManualCache", true, loader)
                            .getDeclaredField("cache"));
            evictionLock = (ReentrantLock) accessible(Class.forName(CAFFEINE + ".BoundedLocalCache", true, loader)
                            .getDeclaredField("evictionLock"))
                    .get(bounded.get(cache));
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
