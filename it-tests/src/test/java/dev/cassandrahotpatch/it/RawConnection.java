/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.it;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/**
 * One connection that speaks CQL's native protocol (version 4) by itself: a driver would add requests of its own, and then
 * nobody could say exactly how many there were. To be used by one thread.
 */
final class RawConnection implements AutoCloseable {
    private static final int VERSION = 4;
    private static final int STARTUP = 0x01;
    private static final int READY = 0x02;
    private static final int QUERY = 0x07;
    private static final int RESULT = 0x08;
    private static final int CONSISTENCY_ONE = 1;
    private static final int TIMEOUT_MILLIS = 30_000;
    /** So many requests are under way at a time: a connection's requests run on several of the node's threads. */
    private static final int IN_FLIGHT = 25;

    private final Socket socket = new Socket();
    private final DataInputStream in;
    private final DataOutputStream out;
    private long requests;

    /** Connects and makes the one request that a connection begins with. */
    RawConnection(InetSocketAddress address) throws IOException {
        socket.setTcpNoDelay(true);
        socket.setSoTimeout(TIMEOUT_MILLIS);
        socket.connect(address, TIMEOUT_MILLIS);
        in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
        out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
        byte[] name = "CQL_VERSION".getBytes(StandardCharsets.UTF_8);
        byte[] value = "3.0.0".getBytes(StandardCharsets.UTF_8);
        writeHeader(0, STARTUP, 2 + 2 + name.length + 2 + value.length);
        out.writeShort(1);
        out.writeShort(name.length);
        out.write(name);
        out.writeShort(value.length);
        out.write(value);
        out.flush();
        readResponse(READY);
    }

    /** Makes requests and reads their responses. */
    void query(String cql, int times) throws IOException {
        byte[] text = cql.getBytes(StandardCharsets.UTF_8);
        for (int sent = 0; sent < times; ) {
            int inFlight = Math.min(IN_FLIGHT, times - sent);
            for (int stream = 0; stream < inFlight; stream++) {
                writeHeader(stream, QUERY, 4 + text.length + 2 + 1);
                out.writeInt(text.length);
                out.write(text);
                out.writeShort(CONSISTENCY_ONE);
                out.writeByte(0);
            }
            out.flush();
            for (int stream = 0; stream < inFlight; stream++) {
                readResponse(RESULT);
            }
            sent += inFlight;
        }
    }

    /** How many requests the node has answered on this connection. */
    long requests() {
        return requests;
    }

    /** The client's port, by which the node tells its connections apart. */
    int port() {
        return socket.getLocalPort();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }

    private void writeHeader(int stream, int opcode, int length) throws IOException {
        out.writeByte(VERSION);
        out.writeByte(0);
        out.writeShort(stream);
        out.writeByte(opcode);
        out.writeInt(length);
    }

    private void readResponse(int expected) throws IOException {
        in.readInt(); // version, flags and stream
        int opcode = in.readUnsignedByte();
        byte[] body = in.readNBytes(in.readInt());
        if (opcode != expected) {
            throw new IOException(
                    "opcode " + opcode + " instead of " + expected + ": " + new String(body, StandardCharsets.UTF_8));
        }
        requests++;
    }
}
