package org.verbena.api.internal.request;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Where the bytes of a message are when it becomes a frame. */
class FramesTest {
    private static final ByteBufAllocator ALLOCATOR = UnpooledByteBufAllocator.DEFAULT;

    private static ByteBuf copyOf(byte[] message) {
        return Objects.requireNonNull(Frames.copyOf(ALLOCATOR, ByteBuffer.wrap(message)));
    }

    private static byte[] bytes(int count) {
        byte[] bytes = new byte[count];
        new Random(count).nextBytes(bytes);
        return bytes;
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 64, 2048, 2049, 100_000})
    void aCopyIsTheMessageAndItsFrameHasTheHeaderInFront(int length) {
        byte[] message = bytes(length);
        ByteBuffer given = ByteBuffer.wrap(message);
        ByteBuf copy = Objects.requireNonNull(Frames.copyOf(ALLOCATOR, given));
        assertThat(given.remaining()).isEqualTo(length);
        assertThat(ByteBufUtil.getBytes(copy)).isEqualTo(message);
        ByteBuf frame = Frames.of(ALLOCATOR, Frames.TIMED_REQUEST, 4711, 1234, copy);
        long header = frame.readLong();
        assertThat(Frames.kind(header)).isEqualTo(Frames.TIMED_REQUEST);
        assertThat(Frames.correlation(header)).isEqualTo(4711);
        assertThat(Frames.readTime(Frames.TIMED_REQUEST, frame)).isEqualTo(1234);
        assertThat(ByteBufUtil.getBytes(frame)).isEqualTo(message);
        frame.release();
        assertThat(copy.refCnt()).isZero();
    }

    @Test
    void theFrameOfAShortCopyIsTheSameMemory() {
        ByteBuf copy = copyOf(bytes(64));
        assertThat(Frames.of(ALLOCATOR, Frames.REPLY, 1, Frames.NO_TIME, copy)).isSameAs(copy);
        copy.release();
    }

    @Test
    void aFrameThatWasNotSentIsTheMessageAgainAndMayBecomeAnother() {
        byte[] message = bytes(64);
        ByteBuf copy = copyOf(message);
        ByteBuf first = Frames.of(ALLOCATOR, Frames.TIMED_REQUEST, 1, 1000, copy);
        ByteBuf again = Frames.unframed(first);
        assertThat(ByteBufUtil.getBytes(again)).isEqualTo(message);
        ByteBuf second = Frames.of(ALLOCATOR, Frames.MESSAGE, 0, Frames.NO_TIME, again);
        assertThat(second.readableBytes()).isEqualTo(Frames.HEADER_BYTES + 64);
        assertThat(ByteBufUtil.getBytes(second.skipBytes(Frames.HEADER_BYTES))).isEqualTo(message);
        second.release();
    }

    /** As the attempts of a call have it, of which there may be two at once. */
    @Test
    void aViewOfACopyGetsMemoryOfItsOwn() {
        byte[] message = bytes(64);
        ByteBuf copy = copyOf(message);
        ByteBuf first = Frames.of(ALLOCATOR, Frames.TIMED_REQUEST, 1, 1000, copy.retainedDuplicate());
        ByteBuf second = Frames.of(ALLOCATOR, Frames.TIMED_REQUEST, 2, 2000, copy.retainedDuplicate());
        assertThat(Frames.correlation(first.readLong())).isEqualTo(1);
        assertThat(Frames.correlation(second.readLong())).isEqualTo(2);
        assertThat(ByteBufUtil.getBytes(copy)).isEqualTo(message);
        first.release();
        second.release();
        copy.release();
    }

    @Test
    void headersGoInFrontOfACopyAsWell() {
        byte[] message = bytes(64);
        ByteBuf frame = Frames.ofHeadedReply(ALLOCATOR, 7, Headers.NONE, copyOf(message));
        assertThat(Frames.kind(frame.readLong())).isEqualTo(Frames.HEADED_REPLY);
        assertThat(Frames.readHeaders(Frames.HEADED_REPLY, frame)).isNotNull();
        assertThat(ByteBufUtil.getBytes(frame)).isEqualTo(message);
        frame.release();
    }
}
