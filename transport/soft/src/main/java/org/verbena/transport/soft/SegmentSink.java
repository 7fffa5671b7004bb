package org.verbena.transport.soft;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.software.Placement;

/** Receives what a parser finds. All methods are called on the connection's thread, from within the parser's calls. */
interface SegmentSink {

    /** Whether the connection is in use: neither ending nor ended. Otherwise nothing more is parsed. */
    boolean isOpen();

    /**
     * A segment with a good header has come.
     *
     * @param opcode what it is
     * @param key its STag, if tagged
     * @param offset its offset, if tagged
     * @param payloadBytes its payload
     * @return whether to continue with it
     */
    boolean onSegment(int opcode, int key, long offset, int payloadBytes);

    /**
     * Takes the next receive for a message that begins.
     *
     * @param into filled with it
     * @return false if none is posted
     */
    boolean takeReceive(Placement into);

    /**
     * A message is complete where it lies, and was not given a receive.
     *
     * @param memory valid during the call
     * @param at where it begins
     * @param bytes its length
     * @return false if it goes into a receive
     */
    boolean onMessage(MemorySegment memory, long at, int bytes);

    /** A message is longer than its receive; {@link #onRefused} follows. */
    void receiveTooSmall();

    /**
     * A message is complete.
     *
     * @param receive what it filled
     * @param bytes how much
     * @param flags for the handler
     * @param word for the handler
     */
    void onReceived(Placement receive, int bytes, int flags, int word);

    /** A read or atomic of this side is answered. */
    void onAnswered();

    /**
     * The peer sent something that cannot be accepted. The parser stops there.
     *
     * @param reason for the Terminate message
     * @param what it was
     * @param denial the part of the reason that the peer must not learn; null if none
     * @param message the Terminate message's payload
     */
    void onRefused(TerminateReason reason, String what, @Nullable String denial, byte[] message);

    /**
     * The peer has ended the connection because of something that this side did. The parser stops there.
     *
     * @param message the Terminate message's payload
     */
    void onTerminate(byte[] message);
}
