package org.verbena.transport.protocol;

import java.util.function.Consumer;
import org.verbena.transport.Framing;
import org.verbena.transport.SendCompletion;
import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.protocol.wire.Wire;

/**
 * The options of a connection. Both ends may differ in everything except the framing.
 *
 * @param framing the content of a SEND
 * @param receiveDepth receives that are kept posted, {@link #MIN_RECEIVE_DEPTH} or more; all but two carry messages;
 *     {@link #DEVICE_DEFAULT} adapts the number to the peer's traffic, between {@link #firstReceiveDepth(int)} and
 *     {@link #receiveDepth(int)}. With a shared receive queue it only caps the credits granted to one peer
 * @param receiveBufferBytes the size of each, header included, and so the largest SEND that the peer makes; 64 or more,
 *     or {@link #DEVICE_DEFAULT}
 * @param maxMessageBytes the largest message to accept, {@code receiveBufferBytes} or more
 * @param rendezvousThresholdBytes messages longer than this are read by the peer out of this side's memory, if both
 *     ends can; {@link #DEVICE_DEFAULT} for the value measured or calculated for the kind of device, {@link
 *     Integer#MAX_VALUE} for never
 * @param maxRendezvous messages by rendezvous in progress at once, in each direction, 1 to 1024
 * @param maxInlineBytes SENDs up to this size, header included, are copied into the work request, within the device's
 *     limit; 0 for never
 * @param registerThresholdBytes a message in memory that is not registered is copied up to this size, and registered
 *     for the operation above it
 * @param helloTimeoutMillis how long the peer may take for its part of the handshake once connected, 1 or more
 * @param closeTimeoutMillis how long {@link MessageConnection#close()} waits until everything queued is sent and the
 *     peer has answered, 1 or more
 * @param keepAliveMillis after this long without a frame from the peer a ping is sent, and after as long again without
 *     an answer the connection ends; 0 for never. Not with RAW framing, which has no ping
 * @param sendCompletion when a message counts as sent
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
        int keepAliveMillis,
        SendCompletion sendCompletion) {

    /** The smallest receive depth: one message and the two receives that are reserved for control. */
    public static final int MIN_RECEIVE_DEPTH = 3;

    /** The smallest receive buffer: a handshake must fit. */
    public static final int MIN_RECEIVE_BUFFER_BYTES = Wire.LEAST_RECEIVE_BYTES;

    /**
     * The default for the kind of device: for receives and rendezvous from {@code EndpointCapabilities}, for
     * scatter/gather elements from {@code RdmaProvider.usualSges()}.
     */
    public static final int DEVICE_DEFAULT = -1;

    /**
     * MESSAGE framing, the device's defaults for receives and rendezvous with 16 in progress at once, messages up to 64
     * MiB, inline up to the device's limit, registration of unregistered memory above 256 KiB, 10 s for the handshake,
     * 10 s to close, keepalive after 20 s, messages sent when they are acknowledged.
     */
    public static final MessageOptions DEFAULTS = of(new Values());

    /**
     * Detects a peer that is stopped or unreachable within 40 s: less than a minute, and long enough for a loop that is
     * held up or a path under repair. It costs an idle connection a few small frames and one timer every 20 s.
     */
    private static final int DEFAULT_KEEP_ALIVE_MILLIS = 20_000;

    /** The greatest receive depth that is a default. */
    public static final int GREATEST_DEFAULT_DEPTH = 128;

    /** Enough for a window of 62 messages. */
    private static final int LEAST_DEFAULT_DEPTH = 64;

    /** The memory of receives by default, unless that would make them fewer than {@link #LEAST_DEFAULT_DEPTH}. */
    private static final int DEFAULT_DEPTH_BYTES = 4 << 20;

    /** Enough to keep a sender of single messages going. */
    private static final int LEAST_FIRST_DEPTH = 16;

    /** The memory of receives by default of a connection that has never been busy. */
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
     * The largest number of receives to keep posted.
     *
     * @param bufferBytes the size of each, now that it is known
     * @return the configured depth; by default 128, or fewer, down to 64, if that many would take more than 4 MiB
     */
    public int receiveDepth(int bufferBytes) {
        return receiveDepth == DEVICE_DEFAULT
                ? Math.clamp(DEFAULT_DEPTH_BYTES / bufferBytes, LEAST_DEFAULT_DEPTH, GREATEST_DEFAULT_DEPTH)
                : receiveDepth;
    }

    /**
     * The number of receives to keep posted at first, or once they are no longer short.
     *
     * @param bufferBytes the size of each, now that it is known
     * @return the configured depth; by default 64, or fewer, down to 16, if that many would take more than 1 MiB. They
     *     are doubled, up to {@link #receiveDepth(int)}, each time that the peer had to wait for them. With RAW
     *     framing, where the peer cannot report that, the full depth
     */
    public int firstReceiveDepth(int bufferBytes) {
        return receiveDepth == DEVICE_DEFAULT && framing != Framing.RAW
                ? Math.clamp(FIRST_DEPTH_BYTES / bufferBytes, LEAST_FIRST_DEPTH, LEAST_DEFAULT_DEPTH)
                : receiveDepth(bufferBytes);
    }

    /**
     * These options with another framing.
     *
     * @param value the content of a SEND
     * @return a copy
     */
    public MessageOptions withFraming(Framing value) {
        return with(o -> o.framing = value);
    }

    /**
     * These options with other receives.
     *
     * @param depth receives that are kept posted
     * @param bufferBytes the size of each
     * @return a copy
     */
    public MessageOptions withReceives(int depth, int bufferBytes) {
        return with(o -> {
            o.receiveDepth = depth;
            o.receiveBufferBytes = bufferBytes;
        });
    }

    /**
     * These options with another limit for messages.
     *
     * @param value the largest message to accept, in bytes
     * @return a copy
     */
    public MessageOptions withMaxMessageBytes(int value) {
        return with(o -> o.maxMessageBytes = value);
    }

    /**
     * These options with another limit for rendezvous.
     *
     * @param value messages longer than this go by rendezvous, in bytes
     * @return a copy
     */
    public MessageOptions withRendezvousThresholdBytes(int value) {
        return with(o -> o.rendezvousThresholdBytes = value);
    }

    /**
     * These options with keepalive.
     *
     * @param value milliseconds, 0 for none
     * @return a copy
     */
    public MessageOptions withKeepAliveMillis(int value) {
        return with(o -> o.keepAliveMillis = value);
    }

    /**
     * These options with some of them changed: {@code with(o -> o.maxInlineBytes = 0)}.
     *
     * @param change is given a copy, and sets fields, which have the components' names
     * @return the changed copy
     * @throws IllegalArgumentException a value is out of its range
     */
    public MessageOptions with(Consumer<Values> change) {
        Values values = new Values();
        values.framing = framing;
        values.receiveDepth = receiveDepth;
        values.receiveBufferBytes = receiveBufferBytes;
        values.maxMessageBytes = maxMessageBytes;
        values.rendezvousThresholdBytes = rendezvousThresholdBytes;
        values.maxRendezvous = maxRendezvous;
        values.maxInlineBytes = maxInlineBytes;
        values.registerThresholdBytes = registerThresholdBytes;
        values.helloTimeoutMillis = helloTimeoutMillis;
        values.closeTimeoutMillis = closeTimeoutMillis;
        values.keepAliveMillis = keepAliveMillis;
        values.sendCompletion = sendCompletion;
        change.accept(values);
        return of(values);
    }

    private static MessageOptions of(Values values) {
        return new MessageOptions(
                values.framing,
                values.receiveDepth,
                values.receiveBufferBytes,
                values.maxMessageBytes,
                values.rendezvousThresholdBytes,
                values.maxRendezvous,
                values.maxInlineBytes,
                values.registerThresholdBytes,
                values.helloTimeoutMillis,
                values.closeTimeoutMillis,
                values.keepAliveMillis,
                values.sendCompletion);
    }

    /** Fields that have the components' names, and the defaults. */
    @SuppressWarnings("doclint:missing") // the components have it
    public static final class Values {
        public Framing framing = Framing.MESSAGE;
        public int receiveDepth = DEVICE_DEFAULT;
        public int receiveBufferBytes = DEVICE_DEFAULT;
        public int maxMessageBytes = 64 << 20;
        public int rendezvousThresholdBytes = DEVICE_DEFAULT;
        public int maxRendezvous = 16;
        public int maxInlineBytes = Integer.MAX_VALUE;
        public int registerThresholdBytes = 256 << 10;
        public int helloTimeoutMillis = 10_000;
        public int closeTimeoutMillis = 10_000;
        public int keepAliveMillis = DEFAULT_KEEP_ALIVE_MILLIS;
        public SendCompletion sendCompletion = SendCompletion.ACKNOWLEDGED;

        private Values() {}
    }
}
