package org.verbena.transport.protocol.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory of an arena that the user closes before it is sent. */
@Timeout(240)
class ClosedArenaTest extends SimulatedPair {
    @ParameterizedTest
    @ValueSource(ints = {10, 3000, 90_000})
    void failsThatSendAndNoOther(int bytes) throws Exception {
        connected();
        List<@Nullable Throwable> outcomes = new ArrayList<>();
        for (int pieces = 1; pieces <= 2; pieces++) {
            ByteBuf message;
            try (Arena arena = Arena.ofShared()) {
                ByteBuf part = Unpooled.wrappedBuffer(arena.allocate(bytes).asByteBuffer());
                message = pieces == 1
                        ? part
                        : Unpooled.wrappedBuffer(Unpooled.buffer(1).writeByte(1), part);
            }
            left.connection.send(message, (context, cause) -> outcomes.add(cause), null);
            left.connection.flush();
            settle();
        }
        assertThat(outcomes).hasSize(2).hasOnlyElementsOfType(IllegalStateException.class);
        left.sendHeap(bytes);
        left.connection.flush();
        settle();
        assertThat(right.received).isEqualTo(1);
        end();
    }
}
