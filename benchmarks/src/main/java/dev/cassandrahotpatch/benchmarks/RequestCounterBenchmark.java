/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.benchmarks;

import io.netty.channel.Channel;
import io.netty.channel.local.LocalChannel;
import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.LockSupport;
import org.apache.cassandra.auth.AllowAllAuthenticator;
import org.apache.cassandra.concurrent.NamedThreadFactory;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.transport.Connection;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.transport.ServerConnection;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * {@code connection_request_counter}: the request counters of 6.0's own {@code ServerConnection}s. Methods that end in
 * {@code AsUpstream} count as the ticket's fix does: a number of the connection's own that its event loop alone writes.
 */
@BenchmarkMode(Mode.AverageTime)
public class RequestCounterBenchmark {
    /** What every connection's constructor is given; no byte goes through it. */
    private static final LocalChannel CHANNEL = new LocalChannel();

    /** Of no concern to a constructor but for this call; 6.0's has another method, which is not called here. */
    private static final Connection.Tracker TRACKER = (channel, connection) -> {};

    private static final Constructor<ServerConnection> CONNECTION = constructor();

    private static Constructor<ServerConnection> constructor() {
        DatabaseDescriptor.clientInitialization(false);
        // a connection that is not logged in yet needs nothing more of a node than this
        DatabaseDescriptor.setAuthenticator(new AllowAllAuthenticator() {
            @Override
            public boolean requireAuthentication() {
                return true;
            }
        });
        try {
            Constructor<ServerConnection> constructor = ServerConnection.class.getDeclaredConstructor(
                    Channel.class, ProtocolVersion.class, Connection.Tracker.class);
            constructor.setAccessible(true);
            return constructor;
        } catch (NoSuchMethodException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private static ServerConnection connect() {
        try {
            return CONNECTION.newInstance(CHANNEL, ProtocolVersion.V4, TRACKER);
        } catch (ReflectiveOperationException e) {
            throw new LinkageError("can't make a connection", e);
        }
    }

    /** The count that upstream's fix keeps in each connection. */
    private static final class OneWriterCount {
        private static final AtomicLongFieldUpdater<OneWriterCount> REQUESTS =
                AtomicLongFieldUpdater.newUpdater(OneWriterCount.class, "requests");

        private volatile long requests;

        void inc() {
            REQUESTS.lazySet(this, requests + 1);
        }
    }

    /** A thread and the connection whose requests it serves. */
    @State(Scope.Thread)
    public static class OwnConnection {
        private final ServerConnection connection = connect();
        private final OneWriterCount count = new OneWriterCount();
    }

    /** Many connections, and threads that have served some of them and are still there, as request threads are. */
    @State(Scope.Benchmark)
    public static class Connections {
        @Param({"10000", "50000"})
        public int connections;

        @Param({"64", "256"})
        public int requestThreads;

        private AtomicReferenceArray<ServerConnection> open;
        private final List<OneWriterCount> counts = new ArrayList<>();
        private final CountDownLatch end = new CountDownLatch(1);

        /** Opens the connections, starts the threads, and has each serve connections from the last one on. */
        @Setup
        public void open() throws InterruptedException {
            open = new AtomicReferenceArray<>(connections);
            for (int i = 0; i < connections; i++) {
                open.set(i, connect());
                counts.add(new OneWriterCount());
            }
            CountDownLatch served = new CountDownLatch(requestThreads);
            for (int i = 0; i < requestThreads; i++) {
                int first = connections - 1 - i;
                Thread thread = NamedThreadFactory.createThread(
                        null,
                        () -> {
                            for (int at = first; at >= 0; at -= 97) {
                                open.get(at).requests.inc();
                            }
                            served.countDown();
                            try {
                                end.await();
                            } catch (InterruptedException e) {
                                Thread.currentThread().interrupt();
                            }
                        },
                        "request-" + i,
                        true);
                thread.start();
            }
            served.await();
        }

        /** Lets the threads end. */
        @TearDown
        public void close() {
            end.countDown();
        }

        long sum() {
            long sum = 0;
            for (int i = 0; i < connections; i++) {
                sum += open.get(i).requests.getCount();
            }
            return sum;
        }
    }

    /** Threads that close connections and open others in their place, a thousand a second each. */
    @State(Scope.Benchmark)
    public static class Churn {
        @Param({"0", "1", "4"})
        public int closingThreads;

        private final Connections connections = new Connections();
        private final List<Thread> closing = new ArrayList<>();
        private volatile boolean ended;

        /** Opens 10,000 connections that 64 threads have served, and starts to close some. */
        @Setup
        public void open() throws InterruptedException {
            connections.connections = 10_000;
            connections.requestThreads = 64;
            connections.open();
            for (int i = 0; i < closingThreads; i++) {
                int first = i;
                Thread thread = NamedThreadFactory.createThread(
                        () -> {
                            for (int at = first; !ended; at += closingThreads) {
                                ServerConnection opened = connect();
                                opened.requests.inc();
                                connections.open.set(at % connections.connections, opened);
                                LockSupport.parkNanos(1_000_000);
                            }
                        },
                        "closing-" + i);
                thread.start();
                closing.add(thread);
            }
        }

        /** Stops the threads. */
        @TearDown
        public void close() throws InterruptedException {
            ended = true;
            for (Thread thread : closing) {
                thread.join();
            }
            connections.close();
        }
    }

    @Benchmark
    @OutputTimeUnit(TimeUnit.NANOSECONDS)
    public void count(OwnConnection own) {
        own.connection.requests.inc();
    }

    @Benchmark
    @OutputTimeUnit(TimeUnit.NANOSECONDS)
    public void countAsUpstream(OwnConnection own) {
        own.count.inc();
    }

    /** What listing all clients asks of the counters. */
    @Benchmark
    @OutputTimeUnit(TimeUnit.MICROSECONDS)
    public long scan(Connections connections) {
        return connections.sum();
    }

    @Benchmark
    @OutputTimeUnit(TimeUnit.MICROSECONDS)
    public long scanAsUpstream(Connections connections) {
        long sum = 0;
        for (int i = 0; i < connections.connections; i++) {
            sum += connections.counts.get(i).requests;
        }
        return sum;
    }

    /** The same while connections come and go. */
    @Benchmark
    @OutputTimeUnit(TimeUnit.MICROSECONDS)
    public long scanDuringChurn(Churn churn) {
        return churn.connections.sum();
    }
}
