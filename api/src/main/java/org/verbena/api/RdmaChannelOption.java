package org.verbena.api;

import io.netty.channel.ChannelOption;
import org.verbena.api.datagram.RdmaDatagramChannel;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.transport.Framing;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.SendCompletion;
import org.verbena.transport.protocol.MessageOptions;

/**
 * The options of a channel beyond Netty's own. All are read when the connection is made, so set them on the bootstrap:
 * {@code option}, or {@code childOption} for the connections that a server accepts. How long an event loop spins before
 * it blocks is an option of the loop: {@link org.verbena.transport.CompletionLoopOptions}.
 *
 * <p>Of Netty's options channels honour {@code CONNECT_TIMEOUT_MILLIS}, {@code AUTO_READ}, {@code
 * MAX_MESSAGES_PER_READ} (with auto-read off), {@code WRITE_BUFFER_WATER_MARK}, {@code ALLOCATOR}, {@code IP_TOS} and,
 * on servers, {@code SO_BACKLOG} and {@code SO_REUSEADDR}; an {@link RdmaSocketChannel} also {@code
 * ALLOW_HALF_CLOSURE} and {@code SO_LINGER}, and it keeps those that only TCP has, such as {@code TCP_NODELAY}.
 *
 * <p>An {@link RdmaDatagramChannel} honours {@link #SEND_DEPTH} (256), {@link #RECEIVE_DEPTH} (128) and {@link
 * #MAX_INLINE_BYTES} (128), {@code SO_REUSEADDR}, {@code IP_TOS} and those of Netty's options that every channel has;
 * its {@code CONNECT_TIMEOUT_MILLIS} limits each look-up.
 */
public final class RdmaChannelOption {
    private RdmaChannelOption() {}

    /**
     * What a SEND carries. Both ends must use the same framing: {@link Framing#MESSAGE}, the default, or {@link
     * Framing#RAW} on an {@link RdmaChannel}; always {@link Framing#STREAM} on an {@link RdmaSocketChannel}.
     */
    public static final ChannelOption<Framing> FRAMING = ChannelOption.valueOf(RdmaChannelOption.class, "FRAMING");

    /**
     * How many work requests (sends, reads, writes, atomics) the device holds at once; the channel queues the rest. 3
     * to 65536, 64 by default, of which two are kept for control frames; 1 or more with RAW framing.
     */
    public static final ChannelOption<Integer> SEND_DEPTH =
            ChannelOption.valueOf(RdmaChannelOption.class, "SEND_DEPTH");

    /**
     * How many receives are kept posted, and so how many messages the peer may send ahead: {@value
     * MessageOptions#MIN_RECEIVE_DEPTH} to 65536. The default of -1 adapts to the peer's traffic: 1 MiB of receives at
     * first (16 to 64 of them), and twice as many each time the peer had to wait, up to 4 MiB (64 to 128), while less
     * than half of the receive pool is in use. An {@link RdmaChannel} on a device begins with 13 of 256 bytes, if
     * {@link #RECEIVE_BUFFER_BYTES} has its default as well. With RAW framing all are posted at once. An {@link
     * RdmaSocketChannel} on a device keeps 16.
     */
    public static final ChannelOption<Integer> RECEIVE_DEPTH =
            ChannelOption.valueOf(RdmaChannelOption.class, "RECEIVE_DEPTH");

    /**
     * The size of each receive in bytes, and so the longest single SEND of the peer. A longer message takes several, or
     * is sent by rendezvous. The default of -1 selects what measured best: 16 KiB on devices and with a shared receive
     * queue, 63 KiB on soft. On devices an {@link RdmaChannel} without a shared receive queue has 256 bytes until its
     * peer needs more. The default of an {@link RdmaSocketChannel} without a shared receive queue is 63 KiB.
     */
    public static final ChannelOption<Integer> RECEIVE_BUFFER_BYTES =
            ChannelOption.valueOf(RdmaChannelOption.class, "RECEIVE_BUFFER_BYTES");

    /**
     * The longest message that this end accepts, in bytes of the user, without the header of {@link RdmaClient} and
     * {@link RdmaServer}. It limits what the peer can send, as the peer's option limits what this end can send.
     */
    public static final ChannelOption<Integer> MAX_MESSAGE_BYTES =
            ChannelOption.valueOf(RdmaChannelOption.class, "MAX_MESSAGE_BYTES");

    /**
     * Messages longer than this, in bytes, are sent by rendezvous: the receiver reads them from the sender's memory.
     * {@link Integer#MAX_VALUE}, the default of an {@link RdmaSocketChannel}, turns rendezvous off. The default of an
     * {@link RdmaChannel}, -1, selects what measured best on software: 1 MiB on rxe and siw, 32 KiB on shm, and on soft
     * 64 MiB, or 1 MiB if the peer's receives are below 63 KiB. On adapters it selects what is calculated from the
     * link's speed and the cost of a key ({@code docs/adapters.md}). On devices with {@code
     * org.verbena.buffers.trustedPeers}, where no key is made, less may be better.
     */
    public static final ChannelOption<Integer> RENDEZVOUS_THRESHOLD_BYTES =
            ChannelOption.valueOf(RdmaChannelOption.class, "RENDEZVOUS_THRESHOLD_BYTES");

    /**
     * How many messages are sent by rendezvous at once in each direction, 1 to 1024. The lower limit of both ends
     * applies; further messages are queued.
     */
    public static final ChannelOption<Integer> MAX_RENDEZVOUS =
            ChannelOption.valueOf(RdmaChannelOption.class, "MAX_RENDEZVOUS");

    /**
     * Sends of up to this many bytes, header included, are copied into the work request, as far as the device supports
     * (4096 bytes on soft). Up to 65536; 96 by default; 0 turns it off.
     */
    public static final ChannelOption<Integer> MAX_INLINE_BYTES =
            ChannelOption.valueOf(RdmaChannelOption.class, "MAX_INLINE_BYTES");

    /**
     * When the promise of a write completes: {@link SendCompletion#ACKNOWLEDGED}, the default, since it is the stronger
     * one and a failed promise then names what may be lost; or {@link SendCompletion#POSTED}, which saves adapters a
     * completion for each short message, for programs that learn from replies that their messages arrived. Requests and
     * replies of {@link RdmaClient} and {@link RdmaServer} are always sent so; their messages are as this says.
     */
    public static final ChannelOption<SendCompletion> SEND_COMPLETION =
            ChannelOption.valueOf(RdmaChannelOption.class, "SEND_COMPLETION");

    /**
     * A message outside registered memory is copied if it has at most this many bytes, and registered for its send if
     * it is longer.
     */
    public static final ChannelOption<Integer> REGISTER_THRESHOLD_BYTES =
            ChannelOption.valueOf(RdmaChannelOption.class, "REGISTER_THRESHOLD_BYTES");

    /**
     * Scatter/gather elements of one work request, 2 to 256; 1 or more with RAW framing. 4 by default. The default of
     * an {@link RdmaSocketChannel} is -1: 4 on devices and 16 on soft. A message in more components takes several
     * sends, or is copied. Connecting fails if the device supports fewer, with a message that names its limit.
     */
    public static final ChannelOption<Integer> MAX_SGES = ChannelOption.valueOf(RdmaChannelOption.class, "MAX_SGES");

    /** How many reads and atomics are outstanding in each direction, 0 to 128; the channel queues the rest. */
    public static final ChannelOption<Integer> READ_DEPTH =
            ChannelOption.valueOf(RdmaChannelOption.class, "READ_DEPTH");

    /**
     * How often the adapter retransmits a packet that is not acknowledged before the connection is lost, 0 to 7; at
     * most 6 where queue pairs are connected by hand, since soft-RoCE retries forever with 7.
     */
    public static final ChannelOption<Integer> RETRY_COUNT =
            ChannelOption.valueOf(RdmaChannelOption.class, "RETRY_COUNT");

    /**
     * How often the adapter retries a send for which the peer has no receive, 0 to 6; 7 never gives up. With credits no
     * send needs a retry.
     */
    public static final ChannelOption<Integer> RNR_RETRY_COUNT =
            ChannelOption.valueOf(RdmaChannelOption.class, "RNR_RETRY_COUNT");

    /**
     * How long the peer's adapter waits before it repeats a send for which this end has no receive, in microseconds, 10
     * to 655,360, rounded up to a value that the device supports. The default of -1 is 0.64 ms. For {@link
     * Framing#RAW}, since with credits no send is ever repeated. On InfiniBand and RoCE only: over iWARP, soft
     * included, connecting fails with any other value.
     */
    public static final ChannelOption<Integer> MIN_RNR_TIMER_MICROS =
            ChannelOption.valueOf(RdmaChannelOption.class, "MIN_RNR_TIMER_MICROS");

    /**
     * How long the adapter waits for an acknowledgement before it sends again, in microseconds, 5 to 17,179,869,
     * rounded up to 4.096 times a power of two; adapters take up to four times as long. The default of -1 is 268 ms on
     * adapters of RoCE, 67 ms where queue pairs are connected by hand, and elsewhere the kernel's choice. With {@link
     * #RETRY_COUNT} it determines how long a peer may be unreachable. On InfiniBand and RoCE only: over iWARP, soft
     * included, and where the kernel cannot set it, connecting fails with any other value.
     */
    public static final ChannelOption<Integer> ACK_TIMEOUT_MICROS =
            ChannelOption.valueOf(RdmaChannelOption.class, "ACK_TIMEOUT_MICROS");

    /**
     * Whether receives come from a queue that all channels of the loop share, so that memory does not grow with each
     * connection. Its depth is an option of the loops ({@code CompletionLoopOptions.sharedReceiveDepth}). Not with
     * {@link Framing#RAW}: without flow control its peer could use up the receives that others were promised.
     */
    public static final ChannelOption<Boolean> SHARED_RECEIVE_QUEUE =
            ChannelOption.valueOf(RdmaChannelOption.class, "SHARED_RECEIVE_QUEUE");

    /**
     * Whether {@code alloc()} allocates registered memory once the channel is active, even if {@code ALLOCATOR} names
     * another allocator. For frameworks that always set one, such as gRPC. False by default: the channel then uses the
     * allocator that the program names.
     */
    public static final ChannelOption<Boolean> REGISTERED_ALLOCATOR =
            ChannelOption.valueOf(RdmaChannelOption.class, "REGISTERED_ALLOCATOR");

    /**
     * How long closing waits for a peer that does not accept what was flushed, or does not answer CLOSE, in
     * milliseconds, 1 or more; 10,000 by default. A file is sent for as long as the peer accepts some of it within this
     * time.
     */
    public static final ChannelOption<Integer> CLOSE_TIMEOUT_MILLIS =
            ChannelOption.valueOf(RdmaChannelOption.class, "CLOSE_TIMEOUT_MILLIS");

    /**
     * Keys that both ends prove to each other in the handshake, before any message is sent or delivered and, on soft,
     * before one-sided operations are allowed; none by default. Both ends need the option: a server with it rejects
     * clients without it, and a client with it disconnects from a server without it. A client proves its first key; a
     * server accepts any of its keys, so that one can be replaced. It authenticates both ends. It encrypts nothing, and
     * an attacker who can change packets on the path can still take the connection over afterwards: see SECURITY.md.
     * Not with {@link Framing#RAW}, which has no handshake.
     */
    public static final ChannelOption<PreSharedKeys> PRE_SHARED_KEYS =
            ChannelOption.valueOf(RdmaChannelOption.class, "PRE_SHARED_KEYS");

    /**
     * Private data for the connect request, which the server gets before it accepts, in a {@link PrivateDataEvent}.
     * None by default. Only with {@link Framing#RAW}, since the other framings use it for their handshake. The device
     * of the connection limits it: 56 bytes on InfiniBand and RoCE, 251 on iWARP devices, 508 on soft. Connecting with
     * more fails, with a message that names the limit. The array is copied.
     */
    public static final ChannelOption<byte[]> CONNECT_PRIVATE_DATA =
            ChannelOption.valueOf(RdmaChannelOption.class, "CONNECT_PRIVATE_DATA");

    /**
     * Private data with which a server accepts a connection; the client gets them in a {@link PrivateDataEvent}. A
     * {@code childOption}; a handler may also set it on the accepted channel when it gets the event with the client's
     * data. None by default, and only with {@link Framing#RAW}. The device of the connection limits it: 196 bytes on
     * InfiniBand and RoCE, 251 on iWARP devices, 500 on soft. A connection with more is not accepted, and the server's
     * log names the limit. The array is copied.
     */
    public static final ChannelOption<byte[]> ACCEPT_PRIVATE_DATA =
            ChannelOption.valueOf(RdmaChannelOption.class, "ACCEPT_PRIVATE_DATA");

    /**
     * Whether an {@link RdmaServerSocketChannel} takes plain TCP clients as well, on the port that it listens on; false
     * by default. The first bytes of a TCP connection decide: an MPA request is iWARP, and anything else (TLS, HTTP, a
     * program's own protocol) becomes a Netty {@code NioSocketChannel} with the same child handler and child options,
     * so the handler must not require an {@link RdmaSocketChannel}. An {@code option} of the server, which needs the
     * provider {@code soft}, by itself or among others: see {@link org.verbena.transport.provider.ProviderSet}. A
     * server whose children have {@link #PRE_SHARED_KEYS} refuses plain clients, which cannot prove a key.
     */
    public static final ChannelOption<Boolean> PLAIN_TCP = ChannelOption.valueOf(RdmaChannelOption.class, "PLAIN_TCP");

    /**
     * With {@link #PLAIN_TCP}: after how many milliseconds a connection that has not sent enough bytes to identify its
     * protocol counts as plain TCP, for protocols in which the server speaks first. 0, the default, means never: the
     * connection is dropped when the time of soft's handshake is over ({@code org.verbena.soft.handshakeTimeoutMillis},
     * 5 s). Values from that time on have no effect. An RDMA client that needs longer than this to send its request is
     * treated as plain TCP, and fails.
     */
    public static final ChannelOption<Integer> PLAIN_TCP_AFTER_MILLIS =
            ChannelOption.valueOf(RdmaChannelOption.class, "PLAIN_TCP_AFTER_MILLIS");

    /**
     * Whether an {@link RdmaServerSocketChannel} accepts clients with {@link Framing#MESSAGE} as well, on the port that
     * it listens on; false by default. The framing in a client's request decides: its channel is an {@link RdmaChannel}
     * then, with the same child handler and child options, so the handler must not require a channel of bytes. An
     * {@code option} of the server.
     */
    public static final ChannelOption<Boolean> ACCEPT_MESSAGES =
            ChannelOption.valueOf(RdmaChannelOption.class, "ACCEPT_MESSAGES");

    /**
     * After this many milliseconds without a frame from the peer, the channel sends it a PING; if no PONG arrives
     * within the same time again, the connection is lost. With the default of 20,000, a stopped process, a dead machine
     * or a pulled cable is detected within 40 s. A peer whose event loop is blocked for that long, or that is held at a
     * breakpoint, is lost as well: 0 turns keepalive off, for debugging. Not with {@code RAW} framing, which has no
     * PING.
     */
    public static final ChannelOption<Integer> KEEP_ALIVE_MILLIS =
            ChannelOption.valueOf(RdmaChannelOption.class, "KEEP_ALIVE_MILLIS");

    /**
     * The ladder of a {@link LadderSocketChannel}; if it is not set, its loops' {@link RdmaEventLoopGroup#ladder()}
     * applies. Other channels do not have this option.
     */
    public static final ChannelOption<LadderOptions> LADDER = ChannelOption.valueOf(RdmaChannelOption.class, "LADDER");

    /** Whether an option is one of these, by its name. */
    static boolean isOneOf(ChannelOption<?> option) {
        return option.name().startsWith(RdmaChannelOption.class.getName() + '#');
    }
}
