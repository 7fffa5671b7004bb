package org.verbena.rsocket;

import io.netty.channel.ChannelOption;
import io.rsocket.frame.FrameLengthCodec;
import java.util.Map;
import org.verbena.api.RdmaChannelOption;

/** The longest RSocket frame that a channel with certain options accepts. */
final class FrameLength {
    private FrameLength() {}

    /** RSocket's own limit, or {@code MAX_MESSAGE_BYTES} if that is set and lower. */
    static int of(Map<ChannelOption<?>, Object> options) {
        return options.get(RdmaChannelOption.MAX_MESSAGE_BYTES) instanceof Integer bytes
                ? Math.min(bytes, FrameLengthCodec.FRAME_LENGTH_MASK)
                : FrameLengthCodec.FRAME_LENGTH_MASK;
    }
}
