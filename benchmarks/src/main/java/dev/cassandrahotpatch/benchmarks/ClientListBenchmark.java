/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import io.netty.channel.Channel;
import io.netty.channel.embedded.EmbeddedChannel;
import java.lang.reflect.Constructor;
import java.lang.reflect.Proxy;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.transport.Connection;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.transport.ServerConnection;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** {@code connection_request_counter}: what listing the clients does with their request counts, and a request with one. */
@State(Scope.Benchmark)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
public class ClientListBenchmark {
    private static final int CONNECTIONS = 10_000;

    /** Threads that have counted requests and are alive. */
    @Param({"64", "256"})
    public int liveThreads;

    private final List<ServerConnection> connections = new ArrayList<>();
    private final CountDownLatch end = new CountDownLatch(1);

    /** Opens the connections and has each thread count a request on one of them. */
    @Setup
    public void open() throws Exception {
        DatabaseDescriptor.clientInitialization();
        Channel channel = new EmbeddedChannel() {
            @Override
            public SocketAddress remoteAddress() {
                return new InetSocketAddress("127.0.0.1", 9042);
            }
        };
        Constructor<ServerConnection> constructor = ServerConnection.class.getDeclaredConstructor(
                Channel.class, ProtocolVersion.class, Connection.Tracker.class);
        constructor.setAccessible(true);
        for (int i = 0; i < CONNECTIONS; i++) {
            connections.add(constructor.newInstance(channel, ProtocolVersion.V4, noTracker()));
        }
        CountDownLatch counted = new CountDownLatch(liveThreads);
        for (int i = 0; i < liveThreads; i++) {
            ServerConnection connection = connections.get(i);
            Thread thread = new Thread(() -> {
                connection.requests.inc();
                counted.countDown();
                try {
                    end.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        counted.await();
    }

    /** Ends the threads. */
    @TearDown
    public void close() {
        end.countDown();
    }

    /** As {@code system_views.clients} asks each connection for its requests. */
    @Benchmark
    public long list10000Clients() {
        long requests = 0;
        for (ServerConnection connection : connections) {
            requests += connection.requests.getCount();
        }
        return requests;
    }

    /** As {@code Dispatcher} counts a request. */
    @Benchmark
    public void countARequest() {
        connections.get(0).requests.inc();
    }

    /** The interface has more methods in 6.0 than in 4.1. */
    private static Connection.Tracker noTracker() {
        return (Connection.Tracker) Proxy.newProxyInstance(
                ClientListBenchmark.class.getClassLoader(),
                new Class<?>[] {Connection.Tracker.class},
                (proxy, method, arguments) -> method.getReturnType() == boolean.class ? Boolean.FALSE : null);
    }
}
