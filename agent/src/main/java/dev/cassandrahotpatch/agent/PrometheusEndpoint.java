/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.agent;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.function.Supplier;

/** Serves {@code /metrics}, and nothing else, to Prometheus. */
final class PrometheusEndpoint {
    private static final String PATH = "/metrics";
    private static final int BACKLOG = 4;

    private PrometheusEndpoint() {}

    /**
     * Begins to serve, with one thread that never keeps the JVM alive.
     *
     * @param page makes the page, on that thread
     * @throws IOException if the address can't be listened on
     */
    static void serve(String host, int port, Supplier<String> page) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(host, port), BACKLOG);
        server.setExecutor(Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task, "hotpatch-prometheus");
            thread.setDaemon(true);
            return thread;
        }));
        server.createContext(PATH, exchange -> answer(exchange, page));
        server.start(); // its own thread is a daemon, as the one that calls this
    }

    private static void answer(HttpExchange exchange, Supplier<String> page) throws IOException {
        try {
            // contexts match by prefix: /metrics/more comes here, too
            if (!exchange.getRequestURI().getPath().equals(PATH)) {
                exchange.sendResponseHeaders(404, -1);
            } else if (!exchange.getRequestMethod().equals("GET")) {
                exchange.sendResponseHeaders(405, -1);
            } else {
                byte[] body = page.get().getBytes(StandardCharsets.UTF_8);
                exchange.getResponseHeaders().set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
                exchange.sendResponseHeaders(200, body.length);
                try (OutputStream out = exchange.getResponseBody()) {
                    out.write(body);
                }
            }
        } finally {
            exchange.close();
        }
    }
}
