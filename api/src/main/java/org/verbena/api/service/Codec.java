package org.verbena.api.service;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.nio.charset.StandardCharsets;

/**
 * Turns values into messages and back. It is used by several threads at once.
 *
 * @param <T> the type of the values
 */
public interface Codec<T> {
    /** Bytes as they are. */
    Codec<byte[]> BYTES = new Codec<>() {
        @Override
        public void encode(byte[] value, ByteBuf out) {
            out.writeBytes(value);
        }

        @Override
        public byte[] decode(ByteBuf in) {
            return ByteBufUtil.getBytes(in);
        }
    };

    /** Texts as UTF-8. */
    Codec<String> TEXT = new Codec<>() {
        @Override
        public void encode(String value, ByteBuf out) {
            out.writeCharSequence(value, StandardCharsets.UTF_8);
        }

        @Override
        public String decode(ByteBuf in) {
            return in.toString(StandardCharsets.UTF_8);
        }
    };

    /**
     * Writes a value. Runs on the thread that calls, answers, or sends into a stream.
     *
     * @param value never changed
     * @param out grows as needed; not to be released
     * @throws Exception the call fails with it, or the handler's answer does
     */
    void encode(T value, ByteBuf out) throws Exception;

    /**
     * Reads a value, of a peer that may send anything. Runs on the event loop at a client, and at a server where
     * handlers run; of a {@link ValueStream} on the thread that receives. It must not block.
     *
     * @param in valid until this returns; not to be released
     * @return the value, which keeps nothing of the buffer
     * @throws Exception the message is no such value: only this call or stream fails
     */
    T decode(ByteBuf in) throws Exception;
}
