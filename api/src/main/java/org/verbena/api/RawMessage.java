package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.DefaultByteBufHolder;
import java.util.Objects;
import org.verbena.transport.EndpointCapabilities;
import org.verbena.transport.Framing;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.spi.WorkRequest;

/**
 * A message for an {@link RdmaChannel} with {@link Framing#RAW}, and how to post its SEND: with immediate data, with
 * the invalidation of a key, behind a fence, as a solicited event. Write it like a {@code ByteBuf}. The write fails
 * with an {@code UnsupportedOperationException} on a channel with another framing, and where the device or the peer
 * does not support it ({@link AbstractRdmaChannel#capabilities()}); the channel stays open.
 *
 * <p>The peer receives a {@code ByteBuf}. Immediate data is fired before it as an {@link ImmediateDataEvent}, an
 * invalidated key as a {@link KeyInvalidatedEvent}.
 *
 * <p>Immutable except for its content. Each method that changes something returns another message that shares the
 * content and its reference count: continue with that one.
 */
public final class RawMessage extends DefaultByteBufHolder {
    private final WorkRequest.Opcode opcode;
    private final int flags;
    private final int word;

    private RawMessage(ByteBuf content, WorkRequest.Opcode opcode, int flags, int word) {
        super(content);
        this.opcode = opcode;
        this.flags = flags;
        this.word = word;
    }

    /**
     * A message that is sent just as the buffer itself would be.
     *
     * @param content from its reader index to its writer index; owned by the message
     * @return the message
     */
    public static RawMessage of(ByteBuf content) {
        return new RawMessage(content, WorkRequest.Opcode.SEND, 0, 0);
    }

    /**
     * Sends 32 bits beside the bytes. Not on siw, and on soft only to soft ({@link
     * EndpointCapabilities#immediateData()}).
     *
     * @param immediateData for the peer's {@link ImmediateDataEvent}; programs in C have it in network byte order
     * @return a message with the same content
     * @throws IllegalStateException it invalidates a key: a SEND does one of the two
     */
    public RawMessage withImmediate(int immediateData) {
        requireNot(WorkRequest.Opcode.SEND_WITH_INVALIDATE);
        return new RawMessage(content(), WorkRequest.Opcode.SEND_WITH_IMMEDIATE, flags, immediateData);
    }

    /**
     * Invalidates a token of the peer: when the message arrives, its key is no longer valid ({@link
     * EndpointCapabilities#sendWithInvalidate()}). The connection ends if the peer's device refuses, as it may if the
     * token is not from the peer's {@code memory()} for this connection.
     *
     * @param token of the peer's {@code memory()}
     * @return a message with the same content
     * @throws IllegalStateException it has immediate data: a SEND does one of the two
     */
    public RawMessage withInvalidate(RemoteMemory token) {
        requireNot(WorkRequest.Opcode.SEND_WITH_IMMEDIATE);
        return new RawMessage(content(), WorkRequest.Opcode.SEND_WITH_INVALIDATE, flags, token.key());
    }

    private void requireNot(WorkRequest.Opcode other) {
        if (opcode == other) {
            throw new IllegalStateException("a SEND has immediate data or invalidates a key, not both");
        }
    }

    /**
     * Sends the message when the reads and atomics that were started before it are done, so that it may carry the data
     * that they fetch. Its content must then lie in registered memory ({@code alloc()} of the channel), since other
     * content is copied when the message is flushed. On iWARP devices ({@link
     * EndpointCapabilities#readSinkNeedsRemoteWrite()}) this does not help with buffers of {@code alloc()}: a read
     * fills them by a copy when it is done.
     *
     * @return a message with the same content
     */
    public RawMessage fenced() {
        return new RawMessage(content(), opcode, flags | WorkRequest.FENCE, word);
    }

    /**
     * Marks the message as a solicited event, which wakes a program that asked its completion queue only for such
     * events ({@code ibv_req_notify_cq(cq, 1)}). A channel is woken by every message.
     *
     * @return a message with the same content
     */
    public RawMessage solicited() {
        return new RawMessage(content(), opcode, flags | WorkRequest.SOLICITED, word);
    }

    WorkRequest.Opcode opcode() {
        return opcode;
    }

    int flags() {
        return flags;
    }

    /** The immediate data, or the key. */
    int word() {
        return word;
    }

    /** A message with other content that is sent the same way. */
    @Override
    public RawMessage replace(ByteBuf content) {
        return new RawMessage(content, opcode, flags, word);
    }

    @Override
    public RawMessage copy() {
        return (RawMessage) super.copy();
    }

    @Override
    public RawMessage duplicate() {
        return (RawMessage) super.duplicate();
    }

    @Override
    public RawMessage retainedDuplicate() {
        return (RawMessage) super.retainedDuplicate();
    }

    @Override
    public RawMessage retain() {
        super.retain();
        return this;
    }

    @Override
    public RawMessage retain(int increment) {
        super.retain(increment);
        return this;
    }

    @Override
    public RawMessage touch() {
        super.touch();
        return this;
    }

    @Override
    public RawMessage touch(Object hint) {
        super.touch(hint);
        return this;
    }

    @Override
    public boolean equals(Object other) {
        return super.equals(other)
                && other instanceof RawMessage that
                && opcode == that.opcode
                && flags == that.flags
                && word == that.word;
    }

    @Override
    public int hashCode() {
        return Objects.hash(super.hashCode(), opcode, flags, word);
    }

    @Override
    public String toString() {
        return "RawMessage[" + opcode + ((flags & WorkRequest.FENCE) != 0 ? ", fenced" : "")
                + ((flags & WorkRequest.SOLICITED) != 0 ? ", solicited" : "") + ", " + contentToString() + "]";
    }
}
