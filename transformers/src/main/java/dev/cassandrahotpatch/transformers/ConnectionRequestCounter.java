/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.transformers;

import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.FieldInsnNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;
import org.objectweb.asm.tree.TypeInsnNode;

/**
 * CASSANDRA-21569: counts a connection's requests in a {@code LongAdder}-backed counter again.
 *
 * <p>6.0 counts them in a {@code ThreadLocalCounter}, whose reading visits every thread that is alive, so that listing
 * the clients costs connections times threads. The field's type is still {@code com.codahale.metrics.Counter}: the
 * constructor only has to make one. Connections that are already open keep the counter they have, and it goes on counting.
 */
final class ConnectionRequestCounter {
    private static final String THREAD_LOCAL_COUNTER = "org/apache/cassandra/metrics/ThreadLocalCounter";
    private static final String FIELD = "requests";

    static final Patch PATCH = Patch.named(
                    "connection_request_counter",
                    "CASSANDRA-21569",
                    "counts a connection's requests in a LongAdder, so that listing clients is cheap")
            .site(Site.of(
                            "org.apache.cassandra.transport.ServerConnection",
                            "<init>",
                            "(Lio/netty/channel/Channel;Lorg/apache/cassandra/transport/ProtocolVersion;"
                                    + "Lorg/apache/cassandra/transport/Connection$Tracker;)V")
                    .patch("9be78b5f2a4074f8415c775600401dea", "6.0-alpha2")
                    .notNeeded(
                            "2d40b4bd3f40483a6ac563a64e8a35b7",
                            "this Cassandra (4.0 to 5.0) counts a connection's requests in a LongAdder already")
                    .rewrite(2, ConnectionRequestCounter::makePlainCounter))
            .build();

    private ConnectionRequestCounter() {}

    private static int makePlainCounter(MethodNode method) {
        String counter = typeOfTheField(method);
        int places = 0;
        for (AbstractInsnNode instruction : method.instructions) {
            if (instruction.getOpcode() == Opcodes.NEW) {
                TypeInsnNode allocation = (TypeInsnNode) instruction;
                if (allocation.desc.equals(THREAD_LOCAL_COUNTER)) {
                    allocation.desc = counter;
                    places++;
                }
            } else if (instruction.getOpcode() == Opcodes.INVOKESPECIAL) {
                MethodInsnNode call = (MethodInsnNode) instruction;
                if (call.owner.equals(THREAD_LOCAL_COUNTER) && call.desc.equals("()V")) {
                    call.owner = counter;
                    places++;
                }
            }
        }
        return places;
    }

    /** Taken from the code, not named here, so that no relocation of a library in our jar can change the name. */
    private static String typeOfTheField(MethodNode method) {
        for (AbstractInsnNode instruction : method.instructions) {
            if (instruction.getOpcode() == Opcodes.PUTFIELD && ((FieldInsnNode) instruction).name.equals(FIELD)) {
                return Type.getType(((FieldInsnNode) instruction).desc).getInternalName();
            }
        }
        throw new IllegalStateException("the constructor does not set the field " + FIELD);
    }
}
