/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it.containers;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.URI;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Where a Docker engine should be, as {@code DOCKER_HOST} has it, and what is wrong with it: Testcontainers only says that
 * something is. Needs no library, so that it can be run as another user, too. Immutable.
 */
record DockerHost(String host) {
    /** Minor version of the engine's API 1.x that Testcontainers falls back to: that of Docker 17.09. */
    private static final int OLDEST_API = 32;

    private static final int LIMIT_MILLIS = 10_000;
    private static final Pattern API_VERSION = Pattern.compile("\"ApiVersion\"\\s*:\\s*\"1\\.(\\d+)\"");

    /** Prints what is wrong with the host that is given, or an empty line. */
    public static void main(String[] arguments) {
        System.out.println(new DockerHost(arguments[0]).problem().orElse(""));
    }

    /**
     * What is wrong with the engine and what to do about it, in one sentence; nothing if it can be used, or if this is
     * neither a Unix socket nor plain TCP. Takes 10 s at most.
     */
    Optional<String> problem() {
        try {
            URI uri = URI.create(host);
            return switch (String.valueOf(uri.getScheme())) {
                case "unix" -> problem(UnixDomainSocketAddress.of(uri.getPath()));
                case "tcp" ->
                    System.getenv("DOCKER_TLS_VERIFY") == null
                            ? problem(new InetSocketAddress(uri.getHost(), uri.getPort()))
                            : Optional.empty();
                default -> Optional.empty();
            };
        } catch (IllegalArgumentException e) { // also that of a host that can't be resolved
            return Optional.of(host + " is not the address of a Docker engine (" + e
                    + "): give DOCKER_HOST as unix:///path or tcp://host:port");
        }
    }

    private Optional<String> problem(SocketAddress address) {
        String answer;
        try {
            answer = version(address);
        } catch (IOException e) {
            // the JDK has no type of its own for this one
            if (String.valueOf(e.getMessage()).contains("Permission denied")) {
                return Optional.of(
                        "this user may not use the Docker engine at " + host
                                + ": add the user to the socket's group, docker, or point DOCKER_HOST to an engine of the user's own");
            }
            return Optional.of("no Docker engine at " + host + " (" + e + "): start one, as with .ci/docker start,"
                    + " or point DOCKER_HOST to one that runs");
        }
        Matcher version = API_VERSION.matcher(answer);
        if (!version.find()) {
            return Optional.of("what answers at " + host + " is no Docker engine: point DOCKER_HOST to one");
        }
        int minor = Integer.parseInt(version.group(1));
        return minor >= OLDEST_API
                ? Optional.empty()
                : Optional.of("the Docker engine at " + host + " is too old: it speaks version 1." + minor
                        + " of the API, and Testcontainers needs 1." + OLDEST_API + " or later: update the engine");
    }

    private static String version(SocketAddress address) throws IOException {
        try (SocketChannel channel = address instanceof UnixDomainSocketAddress
                ? SocketChannel.open(StandardProtocolFamily.UNIX)
                : SocketChannel.open()) {
            // closing the channel is what ends a read of it
            Thread limit = new Thread(() -> closeLater(channel), "limit-of-docker-host");
            limit.setDaemon(true);
            limit.start();
            try {
                channel.connect(address);
                channel.write(ByteBuffer.wrap(
                        "GET /version HTTP/1.0\r\nHost: docker\r\n\r\n".getBytes(StandardCharsets.US_ASCII)));
                return new String(Channels.newInputStream(channel).readAllBytes(), StandardCharsets.UTF_8);
            } catch (AsynchronousCloseException e) {
                throw new IOException("no answer within " + LIMIT_MILLIS / 1_000 + " s", e);
            } finally {
                limit.interrupt();
            }
        }
    }

    private static void closeLater(SocketChannel channel) {
        try {
            TimeUnit.MILLISECONDS.sleep(LIMIT_MILLIS);
            channel.close();
        } catch (InterruptedException | IOException answeredOrGone) {
            // nothing left to end
        }
    }
}
