package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.Unpooled;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.spi.WorkRequest;

class RawMessageTest {
    private static final RemoteMemory TOKEN = new RemoteMemory(4096, 64, 0x1234, Set.of(Access.REMOTE_READ));

    @Test
    void aCopyGoesTheSameWay() {
        RawMessage message = RawMessage.of(Unpooled.copiedBuffer(new byte[] {1, 2, 3}))
                .withInvalidate(TOKEN)
                .fenced()
                .solicited();
        RawMessage copy = message.copy();
        assertThat(copy).isEqualTo(message).hasSameHashCodeAs(message);
        assertThat(copy.opcode()).isEqualTo(WorkRequest.Opcode.SEND_WITH_INVALIDATE);
        assertThat(copy.flags()).isEqualTo(WorkRequest.FENCE | WorkRequest.SOLICITED);
        assertThat(copy.word()).isEqualTo(0x1234);
        assertThat(message.duplicate()).isEqualTo(message);
        assertThat(RawMessage.of(message.content())).isNotEqualTo(message);
        copy.release();
        message.release();
        assertThat(message.refCnt()).isZero();
    }

    @Test
    void doesOneThingWithAWord() {
        RawMessage plain = RawMessage.of(Unpooled.EMPTY_BUFFER);
        assertThatThrownBy(() -> plain.withImmediate(1).withInvalidate(TOKEN))
                .isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> plain.withInvalidate(TOKEN).withImmediate(1))
                .isInstanceOf(IllegalStateException.class);
        assertThat(plain.withImmediate(1).withImmediate(2).word()).isEqualTo(2);
    }
}
