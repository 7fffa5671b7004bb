package org.verbena.grpc.internal.wire;

import io.netty.buffer.ByteBuf;

/** Gets the frames of a connection, in order. Each method may throw: what it got breaks the rules. */
public interface FrameListener {
    /** The first frame. */
    void onSettings(Settings settings) throws ProtocolViolation;

    /** The beginning of a call, or of its answer. */
    void onHeaders(int stream, boolean end, Fields fields) throws ProtocolViolation;

    /**
     * Bytes of gRPC's messages.
     *
     * @param stream of the call
     * @param end whether the client's half ends here
     * @param from with its reader index at the first byte; what is not read is skipped
     * @param lengthBytes how many are meant
     */
    void onData(int stream, boolean end, ByteBuf from, int lengthBytes) throws ProtocolViolation;

    /** The end of a call, from the server. */
    void onTrailers(int stream, Fields fields) throws ProtocolViolation;

    /** A call ends at once. */
    void onReset(int stream, boolean notProcessed, int status, String text) throws ProtocolViolation;

    /** Credit. */
    void onWindow(int stream, int bytes) throws ProtocolViolation;

    /** The peer opens or takes no more calls. */
    void onGoAway(int lastStream, GoAwayReason reason, String text) throws ProtocolViolation;

    /** A question, or its answer. */
    void onPing(boolean ack, long nonce) throws ProtocolViolation;
}
