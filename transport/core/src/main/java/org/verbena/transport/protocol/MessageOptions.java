package org.verbena.transport.protocol;

/**
 * How a connection speaks. Both ends may differ in everything but the framing.
 *
 * @param framing what a SEND carries
 * @param receiveDepth receives that are kept posted, {@link #MIN_RECEIVE_DEPTH} or more; all but two carry messages; {@link #DEVICE_DEFAULT} for as
 *     many as the peer's traffic wants, within {@link #firstReceiveDepth(int)} and {@link #receiveDepth(int)}. Without a meaning where the loop's shared receive queue
 *     serves the endpoint, but for being the most that one peer is ever promised
 * @param receiveBufferBytes the size of each, header included, and so the largest SEND that the peer makes; 64 or more, or {@link #DEVICE_DEFAULT}
 * @param maxMessageBytes the largest message that is taken, {@code receiveBufferBytes} or more
 * @param rendezvousThresholdBytes messages longer than this are read by the peer out of this side's memory, if both ends can;
 *     {@link #DEVICE_DEFAULT} for what measured best with its kind, {@link Integer#MAX_VALUE} for never
 * @param maxRendezvous messages by rendezvous under way at once, in each direction, 1 to 1024
 * @param maxInlineBytes SENDs up to this size, header included, are copied into the work request, within what the device can; 0 for never
 * @param registerThresholdBytes a message in memory that is not registered is copied piece by piece up to this size, and registered for the operation
 *     above
 * @param helloTimeoutMillis how long the peer may take for its part of the handshake once connected, 1 or more
 * @param closeTimeoutMillis how long {@link MessageConnection#close()} waits for what is queued to be sent and for the peer to answer, 1 or more
 * @param keepAliveMillis after this long without a word from the peer it is asked for one, and after as long again without an answer the connection
 *     ends; 0 for never
 */
public record MessageOptions(
        Framing framing,
        int receiveDepth,
        int receiveBufferBytes,
        int maxMessageBytes,
        int rendezvousThresholdBytes,
        int maxRendezvous,
        int maxInlineBytes,
        int registerThresholdBytes,
        int helloTimeoutMillis,
        int closeTimeoutMillis,
        int keepAliveMillis) {

    /** The least receive depth: one message and the two receives that are kept for control. */
    public static final int MIN_RECEIVE_DEPTH = 3;

    /** The least receive buffer: a handshake must fit. */
    public static final int MIN_RECEIVE_BUFFER_BYTES = 64;

    /** For receives and rendezvous what {@code EndpointCapabilities} says, for pieces {@code RdmaProvider.usualSges()}: what suits this kind of device. */
    public static final int DEVICE_DEFAULT = -1;

    /**
     * MESSAGE framing, receives and rendezvous as suits the device with 16 under way, messages up to 64 MiB, inline to the device's limit, registration
     * of foreign memory above 256 KiB, 10 s for the handshake, 10 s to close, no keepalive.
     */
    public static final MessageOptions DEFAULTS = new MessageOptions(
            Framing.MESSAGE,
            DEVICE_DEFAULT,
            DEVICE_DEFAULT,
            64 << 20,
            DEVICE_DEFAULT,
            16,
            Integer.MAX_VALUE,
            256 << 10,
            10_000,
            10_000,
            0);

    /** The greatest receive depth that is a default. */
    public static final int GREATEST_DEFAULT_DEPTH = 128;

    /** Enough for a window of 62 messages. */
    private static final int LEAST_DEFAULT_DEPTH = 64;

    /** Memory that receives by default take, as far as they are not fewer than {@link #LEAST_DEFAULT_DEPTH} with it. */
    private static final int DEFAULT_DEPTH_BYTES = 4 << 20;

    /** Enough to keep a sender of single messages going. */
    private static final int LEAST_FIRST_DEPTH = 16;

    /** Memory that a connection takes by default before it was ever busy. */
    private static final int FIRST_DEPTH_BYTES = 1 << 20;

    /** Checks ranges. */
    public MessageOptions {
        boolean raw = framing == Framing.RAW;
        if (receiveDepth != DEVICE_DEFAULT) {
            check("receiveDepth", receiveDepth, raw ? 1 : MIN_RECEIVE_DEPTH, 1 << 16);
        }
        if (receiveBufferBytes != DEVICE_DEFAULT) {
            check("receiveBufferBytes", receiveBufferBytes, raw ? 1 : MIN_RECEIVE_BUFFER_BYTES, Integer.MAX_VALUE);
        }
        check("maxMessageBytes", maxMessageBytes, 1, Integer.MAX_VALUE);
        check("rendezvousThresholdBytes", rendezvousThresholdBytes, DEVICE_DEFAULT, Integer.MAX_VALUE);
        check("maxRendezvous", maxRendezvous, 1, 1024);
        check("maxInlineBytes", maxInlineBytes, 0, Integer.MAX_VALUE);
        check("registerThresholdBytes", registerThresholdBytes, 0, Integer.MAX_VALUE);
        check("helloTimeoutMillis", helloTimeoutMillis, 1, Integer.MAX_VALUE);
        check("closeTimeoutMillis", closeTimeoutMillis, 1, Integer.MAX_VALUE);
        check("keepAliveMillis", keepAliveMillis, 0, Integer.MAX_VALUE);
    }

    private static void check(String name, int value, int least, int most) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(name + " " + value + " is not within " + least + " to " + most);
        }
    }

    /**
     * How many receives to keep posted at the most.
     *
     * @param bufferBytes the size of each, now that it is known
     * @return what was asked for; by default 128, and fewer, down to 64, where that many would take more than 4 MiB
     */
    public int receiveDepth(int bufferBytes) {
        return receiveDepth == DEVICE_DEFAULT
                ? Math.clamp(DEFAULT_DEPTH_BYTES / bufferBytes, LEAST_DEFAULT_DEPTH, GREATEST_DEFAULT_DEPTH)
                : receiveDepth;
    }

    /**
     * How many receives to keep posted at first.
     *
     * @param bufferBytes the size of each, now that it is known
     * @return what was asked for; by default 64, and fewer, down to 16, where that many would take more than 1 MiB: then they are doubled, up to
     *     {@link #receiveDepth(int)}, each time that the peer had to wait for want of them. With RAW framing, where no peer says so, all at once
     */
    public int firstReceiveDepth(int bufferBytes) {
        return receiveDepth == DEVICE_DEFAULT && framing != Framing.RAW
                ? Math.clamp(FIRST_DEPTH_BYTES / bufferBytes, LEAST_FIRST_DEPTH, LEAST_DEFAULT_DEPTH)
                : receiveDepth(bufferBytes);
    }

    /**
     * These options with another framing.
     *
     * @param value what a SEND carries
     * @return a copy
     */
    public MessageOptions withFraming(Framing value) {
        return copy(
                value, receiveDepth, receiveBufferBytes, maxMessageBytes, rendezvousThresholdBytes, keepAliveMillis);
    }

    /**
     * These options with other receives.
     *
     * @param depth receives that are kept posted
     * @param bufferBytes the size of each
     * @return a copy
     */
    public MessageOptions withReceives(int depth, int bufferBytes) {
        return copy(framing, depth, bufferBytes, maxMessageBytes, rendezvousThresholdBytes, keepAliveMillis);
    }

    /**
     * These options with another limit for messages.
     *
     * @param value the largest message that is taken, in bytes
     * @return a copy
     */
    public MessageOptions withMaxMessageBytes(int value) {
        return copy(framing, receiveDepth, receiveBufferBytes, value, rendezvousThresholdBytes, keepAliveMillis);
    }

    /**
     * These options with another limit for rendezvous.
     *
     * @param value messages longer than this go by rendezvous, in bytes
     * @return a copy
     */
    public MessageOptions withRendezvousThresholdBytes(int value) {
        return copy(framing, receiveDepth, receiveBufferBytes, maxMessageBytes, value, keepAliveMillis);
    }

    /**
     * These options with keepalive.
     *
     * @param value milliseconds, 0 for none
     * @return a copy
     */
    public MessageOptions withKeepAliveMillis(int value) {
        return copy(framing, receiveDepth, receiveBufferBytes, maxMessageBytes, rendezvousThresholdBytes, value);
    }

    private MessageOptions copy(
            Framing newFraming, int depth, int bufferBytes, int maxBytes, int thresholdBytes, int newKeepAliveMillis) {
        return new MessageOptions(
                newFraming,
                depth,
                bufferBytes,
                maxBytes,
                thresholdBytes,
                maxRendezvous,
                maxInlineBytes,
                registerThresholdBytes,
                helloTimeoutMillis,
                closeTimeoutMillis,
                newKeepAliveMillis);
    }
}
