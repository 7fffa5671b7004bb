package org.verbena.api;

import io.netty.channel.ChannelOption;
import org.verbena.transport.protocol.Framing;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PreSharedKeys;

/**
 * The options that a channel has beyond Netty's own. All of them are read when the connection is made: set them on the bootstrap
 * ({@code option}, or {@code childOption} for what a server accepts). How long a loop spins before it blocks is not a channel's but its loop's
 * matter: see {@link org.verbena.transport.spi.CompletionLoopOptions}.
 *
 * <p>Of Netty's, {@code CONNECT_TIMEOUT_MILLIS}, {@code AUTO_READ}, {@code MAX_MESSAGES_PER_READ} (with auto-read off), {@code WRITE_BUFFER_WATER_MARK}, {@code ALLOCATOR},
 * {@code IP_TOS} and, on servers, {@code SO_BACKLOG} and {@code SO_REUSEADDR} are heeded; on an {@link RdmaStreamChannel} {@code ALLOW_HALF_CLOSURE}, too.
 */
public final class RdmaChannelOption {
    private RdmaChannelOption() {}

    /**
     * What a SEND carries; both ends must use the same. {@link Framing#MESSAGE} by default, or {@link Framing#RAW}, on an {@link RdmaChannel};
     * always {@link Framing#STREAM} on an {@link RdmaStreamChannel}.
     */
    public static final ChannelOption<Framing> FRAMING = ChannelOption.valueOf(RdmaChannelOption.class, "FRAMING");

    /**
     * Work requests (sends, reads, writes, atomics) that the device may hold at once, 3 to 65536, as two are kept for control; with RAW framing from 1. More
     * queue.
     */
    public static final ChannelOption<Integer> SEND_DEPTH =
            ChannelOption.valueOf(RdmaChannelOption.class, "SEND_DEPTH");

    /**
     * Receives kept posted, and so the window that the peer gets: {@value MessageOptions#MIN_RECEIVE_DEPTH} to 65536; -1, the
     * default, for as many as the peer's traffic wants: 1 MiB of them at first (16 to 64), and twice as many each time that the peer had to wait, up to 4 MiB (64 to
     * 128) and while less than half of the receive pool is in use; with RAW framing all at once, on devices an {@link RdmaStreamChannel} keeps 16.
     */
    public static final ChannelOption<Integer> RECEIVE_DEPTH =
            ChannelOption.valueOf(RdmaChannelOption.class, "RECEIVE_DEPTH");

    /**
     * The size of each receive, in bytes, and so the largest single SEND of the peer; longer messages take several or go by rendezvous.
     * 63 KiB on an {@link RdmaStreamChannel} without a shared receive queue; else -1 by default, for what measured best: 16 KiB on devices and with a shared
     * receive queue, 63 KiB on soft.
     */
    public static final ChannelOption<Integer> RECEIVE_BUFFER_BYTES =
            ChannelOption.valueOf(RdmaChannelOption.class, "RECEIVE_BUFFER_BYTES");

    /** The largest message that is taken from the peer, in bytes; what the peer takes limits what can be sent. */
    public static final ChannelOption<Integer> MAX_MESSAGE_BYTES =
            ChannelOption.valueOf(RdmaChannelOption.class, "MAX_MESSAGE_BYTES");

    /**
     * Messages longer than this go by rendezvous: the receiver reads them out of the sender's memory. In bytes; {@link Integer#MAX_VALUE} for never, as is the
     * default of an {@link RdmaStreamChannel}; -1, the default of an {@link RdmaChannel}, for what measured best: 64 KiB on devices, on soft 64 MiB, or
     * 1 MiB if the peer's receives are below 63 KiB.
     */
    public static final ChannelOption<Integer> RENDEZVOUS_THRESHOLD_BYTES =
            ChannelOption.valueOf(RdmaChannelOption.class, "RENDEZVOUS_THRESHOLD_BYTES");

    /** Messages by rendezvous under way at once in each direction, 1 to 1024; of both ends' figures the lower counts, and more queue. */
    public static final ChannelOption<Integer> MAX_RENDEZVOUS =
            ChannelOption.valueOf(RdmaChannelOption.class, "MAX_RENDEZVOUS");

    /**
     * Sends up to this size, header included, are copied into the work request, or up to the device's limit if that is lower (4096 on soft); 0 for never. In bytes,
     * up to 65536; 128 by default.
     */
    public static final ChannelOption<Integer> MAX_INLINE_BYTES =
            ChannelOption.valueOf(RdmaChannelOption.class, "MAX_INLINE_BYTES");

    /** A message outside registered memory is copied up to this size, and registered for its send above. In bytes. */
    public static final ChannelOption<Integer> REGISTER_THRESHOLD_BYTES =
            ChannelOption.valueOf(RdmaChannelOption.class, "REGISTER_THRESHOLD_BYTES");

    /**
     * Scatter/gather elements of one work request, 2 to 256; with RAW framing from 1. 4 by default; on an {@link RdmaStreamChannel} -1, which is 4 on devices and
     * 16 on soft. More than the device has fails the connection, with the device's limit. What lies in more pieces of memory goes in several sends, or is copied.
     */
    public static final ChannelOption<Integer> MAX_SGES = ChannelOption.valueOf(RdmaChannelOption.class, "MAX_SGES");

    /** Reads and atomics outstanding in each direction, 0 to 128; more queue. */
    public static final ChannelOption<Integer> READ_DEPTH =
            ChannelOption.valueOf(RdmaChannelOption.class, "READ_DEPTH");

    /** How often the adapter repeats what is not acknowledged before the connection is lost, 0 to 7. */
    public static final ChannelOption<Integer> RETRY_COUNT =
            ChannelOption.valueOf(RdmaChannelOption.class, "RETRY_COUNT");

    /** How often the adapter repeats what finds no receive at the peer, 0 to 6; 7 is for ever. With credits it never has to. */
    public static final ChannelOption<Integer> RNR_RETRY_COUNT =
            ChannelOption.valueOf(RdmaChannelOption.class, "RNR_RETRY_COUNT");

    /**
     * Whether receives come from a queue that all channels of the loop share, so that memory does not grow with each connection. Not with
     * {@link Framing#RAW}, which has no flow control: its peer could use up what others were promised.
     */
    public static final ChannelOption<Boolean> SHARED_RECEIVE_QUEUE =
            ChannelOption.valueOf(RdmaChannelOption.class, "SHARED_RECEIVE_QUEUE");

    /**
     * Whether {@code alloc()} gives registered memory once the channel is active, even where {@code ALLOCATOR} names another allocator. For frameworks that
     * always set one, such as gRPC. False by default: who names an allocator gets it.
     */
    public static final ChannelOption<Boolean> REGISTERED_ALLOCATOR =
            ChannelOption.valueOf(RdmaChannelOption.class, "REGISTERED_ALLOCATOR");

    /**
     * How long closing waits for a peer that does not take what was flushed, or does not answer CLOSE, in milliseconds, 1 or more; 10,000 by default. A file is
     * sent for as long as the peer takes some of it within this time.
     */
    public static final ChannelOption<Integer> CLOSE_TIMEOUT_MILLIS =
            ChannelOption.valueOf(RdmaChannelOption.class, "CLOSE_TIMEOUT_MILLIS");

    /**
     * Keys that both ends prove to each other in the handshake, before any message is sent or delivered and, on soft, before one-sided operations are allowed; none
     * by default. Both ends need the option: a server with it rejects clients without it, and a client with it disconnects from a server without it. A client
     * proves its first key; a server accepts any of its keys, so that one can be replaced. It authenticates both ends. It encrypts nothing, and an attacker who
     * can change packets on the path can still take the connection over afterwards: see SECURITY.md. Not with {@link Framing#RAW}, which has no handshake.
     */
    public static final ChannelOption<PreSharedKeys> PRE_SHARED_KEYS =
            ChannelOption.valueOf(RdmaChannelOption.class, "PRE_SHARED_KEYS");

    /**
     * After this long without a word, the peer is asked for one; after as long again the connection is lost. In milliseconds;
     * 0 for never; 20,000 by default, which finds a peer whose process is stopped, whose machine is gone or whose cable is
     * pulled within 40 s. It also loses a peer whose event loop is blocked for so long, or that stands at a breakpoint: set 0
     * to debug. Not with {@code RAW} framing, which has no frames of its own to ask with.
     */
    public static final ChannelOption<Integer> KEEP_ALIVE_MILLIS =
            ChannelOption.valueOf(RdmaChannelOption.class, "KEEP_ALIVE_MILLIS");
}
