/* SPDX-License-Identifier: Apache-2.0 */
package dev.cassandrahotpatch.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class ChunkSlotsTest {
    private static final int BYTES = 16 << 10;
    private static final int RESTING = (2 << 20) / BYTES;

    @Test
    void aSlotRestsUntilTwoMebibytesOfOthersHaveBeenUsed() {
        ChunkSlots slots = new ChunkSlots(64 << 20);
        ChunkSlots.Kind kind = slots.join(ByteBuffer.allocateDirect(BYTES));
        Set<ByteBuffer> used = Collections.newSetFromMap(new IdentityHashMap<>());
        List<ByteBuffer> inOrder = new ArrayList<>();
        for (int n = 0; n < RESTING; n++) {
            ByteBuffer slot = slots.take(kind);
            assertThat(used.add(slot)).isTrue();
            inOrder.add(slot);
            slots.give(kind, slot);
        }
        for (ByteBuffer next : inOrder) {
            assertThat(slots.take(kind)).isSameAs(next);
            slots.give(kind, next);
        }
        assertThat(slots.held()).isEqualTo((long) RESTING * BYTES);
        slots.leave();
        assertThat(slots.held()).isZero();
    }

    @Test
    void noSlotRestsWhereTheBoundLeavesNoRoomForOthers() {
        ChunkSlots slots = new ChunkSlots(2 * BYTES);
        ChunkSlots.Kind kind = slots.join(ByteBuffer.allocateDirect(BYTES));
        ByteBuffer first = slots.take(kind);
        ByteBuffer second = slots.take(kind);
        assertThat(slots.take(kind)).isNull();
        slots.give(kind, first);
        assertThat(slots.take(kind)).isSameAs(first);
        slots.give(kind, first);
        slots.give(kind, second);
        assertThat(slots.inUse()).isZero();
    }

    @Test
    void freeSlotsOfOneKindMakeRoomForAnother() {
        ChunkSlots slots = new ChunkSlots(2 * BYTES);
        ChunkSlots.Kind direct = slots.join(ByteBuffer.allocateDirect(BYTES));
        ChunkSlots.Kind onHeap = slots.join(ByteBuffer.allocate(2 * BYTES));
        ByteBuffer one = slots.take(direct);
        ByteBuffer two = slots.take(direct);
        slots.give(direct, one);
        assertThat(slots.take(onHeap)).isNull();
        slots.give(direct, two);
        ByteBuffer other = slots.take(onHeap);
        assertThat(other.isDirect()).isFalse();
        assertThat(other.capacity()).isEqualTo(2 * BYTES);
        assertThat(slots.held()).isEqualTo(2L * BYTES);
    }

    @Test
    void writersOfOneKindShareTheirSlots() {
        ChunkSlots slots = new ChunkSlots(64 << 20);
        ByteBuffer buffer = ByteBuffer.allocateDirect(BYTES);
        assertThat(slots.join(buffer)).isSameAs(slots.join(ByteBuffer.allocateDirect(BYTES)));
        assertThat(slots.join(buffer)).isNotSameAs(slots.join(ByteBuffer.allocate(BYTES)));
    }
}
