package org.verbena.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.verbena.transport.MemoryDomain.Access;

class RemoteMemoryTest {
    private static final RemoteMemory TOKEN =
            new RemoteMemory(0x7fff_1234_5678_9abcL, 1L << 33, 0xdeadbeef, Set.of(Access.REMOTE_READ));

    @Test
    void decodesWhatWasEncoded() {
        for (int rights = 0; rights < 8; rights++) {
            EnumSet<Access> access = EnumSet.noneOf(Access.class);
            if ((rights & 1) != 0) {
                access.add(Access.REMOTE_READ);
            }
            if ((rights & 2) != 0) {
                access.add(Access.REMOTE_WRITE);
            }
            if ((rights & 4) != 0) {
                access.add(Access.REMOTE_ATOMIC);
            }
            RemoteMemory token = new RemoteMemory(TOKEN.address(), TOKEN.lengthBytes(), TOKEN.key(), access);
            assertThat(RemoteMemory.decode(token.encode())).isEqualTo(token);
            ByteBuf buffer = Unpooled.buffer();
            token.encode(buffer);
            assertThat(buffer.readableBytes()).isEqualTo(RemoteMemory.ENCODED_BYTES);
            assertThat(RemoteMemory.decode(buffer)).isEqualTo(token);
            assertThat(buffer.isReadable()).isFalse();
        }
    }

    @Test
    void keepsOnlyWhatAPeerCanUse() {
        assertThat(new RemoteMemory(0, 1, 1, EnumSet.allOf(Access.class)).access())
                .containsExactlyInAnyOrder(Access.REMOTE_READ, Access.REMOTE_WRITE, Access.REMOTE_ATOMIC);
    }

    @Test
    void rejectsStrangers() {
        byte[] bytes = TOKEN.encode();
        bytes[0] ^= 1;
        assertThatThrownBy(() -> RemoteMemory.decode(bytes)).hasMessageContaining("not a memory token");
        bytes[0] ^= 1;
        bytes[3] = 8;
        assertThatThrownBy(() -> RemoteMemory.decode(bytes)).hasMessageContaining("rights 0x8");
        assertThatThrownBy(() -> RemoteMemory.decode(new byte[23])).hasMessageContaining("there are 23");
        assertThatThrownBy(() -> RemoteMemory.decode(Unpooled.wrappedBuffer(new byte[23])))
                .hasMessageContaining("there are 23");
    }

    @Test
    void slicesWithinItsBounds() {
        RemoteMemory memory = new RemoteMemory(1000, 100, 7, Set.of(Access.REMOTE_WRITE));
        assertThat(memory.slice(90, 10)).isEqualTo(new RemoteMemory(1090, 10, 7, Set.of(Access.REMOTE_WRITE)));
        assertThatThrownBy(() -> memory.slice(91, 10)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> memory.slice(-1, 10)).isInstanceOf(IndexOutOfBoundsException.class);
        assertThatThrownBy(() -> memory.checkBounds(1, Long.MAX_VALUE)).isInstanceOf(IndexOutOfBoundsException.class);
        memory.checkBounds(100, 0);
    }

    @Test
    void saysWhichRightIsMissing() {
        assertThatThrownBy(() -> TOKEN.checkAccess(Access.REMOTE_WRITE))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("not REMOTE_WRITE");
        TOKEN.checkAccess(Access.REMOTE_READ);
    }
}
