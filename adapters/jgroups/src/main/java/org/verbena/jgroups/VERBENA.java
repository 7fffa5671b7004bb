package org.verbena.jgroups;

import io.netty.channel.ChannelOption;
import java.io.DataInput;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.jgroups.Address;
import org.jgroups.Message;
import org.jgroups.MessageFactory;
import org.jgroups.PhysicalAddress;
import org.jgroups.annotations.MBean;
import org.jgroups.annotations.ManagedAttribute;
import org.jgroups.annotations.ManagedOperation;
import org.jgroups.annotations.Property;
import org.jgroups.conf.AttributeType;
import org.jgroups.protocols.BasicTCP;
import org.jgroups.util.MessageBatch;
import org.jgroups.util.PassRegularMessagesUpDirectly;
import org.jgroups.util.Util;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;
import org.verbena.api.RdmaChannelOption;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.RateLimitedLog;

/**
 * JGroups' transport over RDMA, in place of {@code TCP}. What a bundler has put together for a peer is one message of
 * an {@link org.verbena.api.RdmaChannel}; there is one channel for each peer, made when something is first sent to it.
 *
 * <pre>{@code
 * <org.verbena.jgroups.VERBENA bind_addr="SITE_LOCAL" bind_port="7800"/>
 * <TCPPING initial_hosts="one[7800],two[7800]"/>
 * }</pre>
 *
 * <p>It has the attributes of {@code TCP}, except those of sockets and sending threads ({@code recv_buf_size}, {@code
 * send_buf_size}, {@code tcp_nodelay}, {@code linger}, {@code tls}, {@code use_lock_to_send} and the like), which have
 * no effect, and those below. {@code sock_conn_timeout} and {@code peer_addr_read_timeout} are 5 s at least. Protocols
 * with sockets of their own, such as {@code FD_SOCK2} and {@code MPING}, and the diagnostics keep them.
 *
 * <p>What a peer does not take yet waits in a queue of that peer, also while its connection is being made. If the queue
 * is full, sending waits as long as the peer goes on taking messages, as it does with {@code TCP}. A peer that takes
 * none for {@code max_block_time} holds nobody up any longer: messages to it are dropped, and {@code NAKACK} and {@code
 * UNICAST} send them again once it does.
 *
 * <p>Messages are parsed on event loops and delivered on JGroups' own threads. With {@code direct} or
 * {@code all-direct} as {@code message_processing_policy} event loops deliver them, and a receiver must not wait there.
 */
@MBean(description = "Transport over RDMA")
public class VERBENA extends BasicTCP {
    /** More than one loop does for most clusters, and few enough threads for any process. */
    private static final int DEFAULT_EVENT_LOOPS =
            Math.clamp(Runtime.getRuntime().availableProcessors(), 1, 4);

    /**
     * Four times what JGroups' flow control lets a member send ahead, which is 4 MB in its larger examples: so only
     * what no flow control holds back is ever dropped.
     */
    private static final int DEFAULT_MAX_QUEUED_BYTES = 16 << 20;

    /**
     * Longer than most pauses of a peer, such as a garbage collection. A peer that hangs delays the others by a tenth
     * of a second, once.
     */
    private static final long DEFAULT_MAX_BLOCK_MILLIS = 100;

    /**
     * How long a peer gets at least to answer a connection, and then to say which member it is. JGroups' examples give
     * a peer's kernel 300 ms, since with {@code TCP} senders wait for it. Here the peer's process has to answer, which
     * may be loading classes or collecting garbage, and no sender waits.
     */
    private static final int MIN_CONNECT_MILLIS = 5_000;

    private static final String OF_TCP = "Has no effect: accepted because configurations of TCP have it";

    @Property(name = "buffered_input_stream_size", description = OF_TCP)
    private @Nullable String bufferedInputStreamSize;

    @Property(name = "buffered_output_stream_size", description = OF_TCP)
    private @Nullable String bufferedOutputStreamSize;

    @Property(name = "log_accept_error", description = OF_TCP)
    private @Nullable String logAcceptError;

    @Property(name = "max_send_queue", description = OF_TCP)
    private @Nullable String maxSendQueue;

    @Property(name = "non_blocking_sends", description = OF_TCP)
    private @Nullable String nonBlockingSends;

    @Property(name = "use_lock_to_send", description = OF_TCP)
    private @Nullable String useLockToSend;

    /** Null for the configured provider. */
    @Property(
            name = "provider",
            description = "What carries the messages: auto, verbs, soft, shm, several joined by +, all, or ladder, "
                    + "which connects with the best that the peer has as well. The default is the value of the system "
                    + "property org.verbena.provider")
    private @Nullable String provider;

    @Property(name = "event_loops", description = "How many threads move the messages, for each provider")
    private int eventLoops = DEFAULT_EVENT_LOOPS;

    @Property(
            name = "max_queued_bytes",
            description = "How much may wait for one peer; messages beyond that are dropped",
            type = AttributeType.BYTES)
    private int maxQueuedBytes = DEFAULT_MAX_QUEUED_BYTES;

    @Property(
            name = "max_block_time",
            description = "How long a send waits while max_queued_bytes wait for a peer that takes nothing, before it "
                    + "drops its message. 0: not at all",
            type = AttributeType.TIME)
    private long maxBlockTime = DEFAULT_MAX_BLOCK_MILLIS;

    private final Map<ChannelOption<?>, @Nullable Object> options = new LinkedHashMap<>();

    /** What peers send that JGroups cannot read. */
    private final RateLimitedLog invalid = new RateLimitedLog(LoggerFactory.getLogger(VERBENA.class));

    /** Null until it is started. */
    private volatile @Nullable PeerServer server;

    /** Creates the transport; JGroups does, from its XML. */
    public VERBENA() {}

    /**
     * Returns what carries the messages.
     *
     * @return the attribute {@code provider}
     */
    public String getProvider() {
        return provider == null ? ProviderChoice.configured() : provider;
    }

    /**
     * Sets what carries the messages. Before the transport is started.
     *
     * @param name as {@link ProviderSet} describes
     * @return this
     */
    public VERBENA setProvider(String name) {
        provider = Objects.requireNonNull(name, "the provider is null");
        return this;
    }

    /**
     * Returns how many threads move the messages.
     *
     * @return for each provider
     */
    public int getEventLoops() {
        return eventLoops;
    }

    /**
     * Sets how many threads move the messages. Before the transport is started.
     *
     * @param threads for each provider, 1 or more
     * @return this
     */
    public VERBENA setEventLoops(int threads) {
        eventLoops = threads;
        return this;
    }

    /**
     * Returns how much may wait for one peer.
     *
     * @return in bytes
     */
    public int getMaxQueuedBytes() {
        return maxQueuedBytes;
    }

    /**
     * Sets how much may wait for one peer, beside what its channel has under way. Before the transport is started.
     *
     * @param bytes 1 or more; a longer message waits if no other does
     * @return this
     */
    public VERBENA setMaxQueuedBytes(int bytes) {
        maxQueuedBytes = bytes;
        return this;
    }

    /**
     * Returns how long a send waits for a peer that takes nothing.
     *
     * @return in milliseconds
     */
    public long getMaxBlockTime() {
        return maxBlockTime;
    }

    /**
     * Sets how long a send waits for a peer that takes nothing and for which all that may wait does. Before the
     * transport is started.
     *
     * @param millis 0 or more; with 0 it drops the message at once
     * @return this
     */
    public VERBENA setMaxBlockTime(long millis) {
        maxBlockTime = millis;
        return this;
    }

    /**
     * Sets an option of all channels, of those that connect and of those that are accepted, such as {@link
     * RdmaChannelOption#PRE_SHARED_KEYS}. Before the transport is started.
     *
     * @param option one that {@link RdmaChannelOption} describes
     * @param value null for its default
     * @param <T> of the value
     * @return this
     */
    public <T> VERBENA option(ChannelOption<T> option, @Nullable T value) {
        options.put(Objects.requireNonNull(option, "the option is null"), value);
        return this;
    }

    @Override
    public void init() throws Exception {
        super.init();
        if (eventLoops < 1) {
            throw new IllegalArgumentException("event_loops is " + eventLoops + ", and must be 1 or more");
        }
        if (maxQueuedBytes < 1) {
            throw new IllegalArgumentException("max_queued_bytes is " + maxQueuedBytes + ", and must be 1 or more");
        }
        if (maxBlockTime < 0) {
            throw new IllegalArgumentException("max_block_time is " + maxBlockTime + ", and must be 0 or more");
        }
        if (Stream.of(
                        bufferedInputStreamSize,
                        bufferedOutputStreamSize,
                        logAcceptError,
                        maxSendQueue,
                        nonBlockingSends,
                        useLockToSend)
                .anyMatch(Objects::nonNull)) {
            log.debug("%s: attributes of TCP's sockets and threads have no effect", local_addr);
        }
        if (msg_processing_policy instanceof PassRegularMessagesUpDirectly) {
            log.warn("%s: messages are delivered on event loops, where receivers must not wait", local_addr);
        }
    }

    @Override
    public void start() throws Exception {
        PeerServer made = new PeerServer(settings(), getThreadFactory());
        made.receiver(this)
                .timeService(time_service)
                .log(log)
                .logDetails(log_details)
                .addConnectionListener(this);
        if (conn_expire_time > 0) {
            made.connExpireTimeout(conn_expire_time).reaperInterval(reaper_interval);
        }
        server = made;
        try {
            super.start();
        } catch (Throwable failure) {
            made.stop();
            throw failure;
        }
    }

    private PeerServer.Settings settings() {
        Map<ChannelOption<?>, @Nullable Object> all = new LinkedHashMap<>();
        all.put(ChannelOption.CONNECT_TIMEOUT_MILLIS, Math.max(sock_conn_timeout, MIN_CONNECT_MILLIS));
        if (max_length > 0) {
            all.put(RdmaChannelOption.MAX_MESSAGE_BYTES, max_length);
        }
        all.putAll(options);
        return new PeerServer.Settings(
                getProvider(),
                eventLoops,
                new PeerServer.Ports(bind_addr, bind_port, bind_port + Math.max(0, port_range)),
                new PeerServer.Outside(external_addr, external_port),
                clientAddress(),
                all,
                maxQueuedBytes,
                maxBlockTime,
                Math.max(peer_addr_read_timeout, MIN_CONNECT_MILLIS));
    }

    /** What its connections come from; null for whatever the provider takes. */
    private @Nullable InetSocketAddress clientAddress() {
        InetAddress address = client_bind_addr;
        return defer_client_bind_addr || (address == null && client_bind_port == 0)
                ? null
                : new InetSocketAddress(address, client_bind_port);
    }

    @Override
    public void stop() {
        super.stop();
        stopServer();
    }

    @Override
    protected void handleConnect() throws Exception {
        started().start();
        connected = true;
        super.handleConnect();
    }

    @Override
    protected void handleDisconnect() {
        super.handleDisconnect();
        connected = false;
        stopServer();
    }

    private void stopServer() {
        PeerServer made = server;
        if (made != null) {
            made.stop();
        }
    }

    PeerServer started() {
        return Objects.requireNonNull(server, "the transport is not started");
    }

    @Override
    protected @Nullable PhysicalAddress getPhysicalAddress() {
        PeerServer made = server;
        return made == null ? null : (PhysicalAddress) made.localAddress();
    }

    @Override
    public void send(Address dest, byte[] data, int offset, int length) throws Exception {
        PeerServer made = server;
        if (made != null) {
            made.send(dest, data, offset, length);
        }
    }

    /** As in JGroups, which logs each message that it cannot read, with its stack, however many a peer sends. */
    @Override
    protected void handleMessageBatch(DataInput in, boolean multicast) {
        try {
            MessageBatch[] batches = Util.readMessageBatch(in, multicast);
            for (int i = batches.length - 1; i >= 0; i--) { // those out of band first
                if (batches[i] != null) {
                    msg_stats.received(batches[i]);
                    processBatch(batches[i], i > 0);
                }
            }
        } catch (Throwable failure) {
            invalid.error(local_addr + ": messages cannot be read", failure);
        }
    }

    @Override
    protected void handleSingleMessage(DataInput in, boolean multicast) {
        try {
            Message message = MessageFactory.create(in.readShort());
            message.readFrom(in);
            if (multicast || !unicastDestMismatch(message.getDest())) {
                msg_processing_policy.process(message, message.isFlagSet(Message.Flag.OOB));
                msg_stats.received(message);
            }
        } catch (Throwable failure) {
            invalid.error(local_addr + ": a message cannot be read", failure);
        }
    }

    @Override
    public void retainAll(Collection<Address> members) {
        started().retainAll(members, is_member);
    }

    /**
     * Returns how many peers there are connections with.
     *
     * @return 0 or more
     */
    @ManagedAttribute(description = "The number of connections", type = AttributeType.SCALAR, gauge = true)
    public int getOpenConnections() {
        PeerServer made = server;
        return made == null ? 0 : made.getNumConnections();
    }

    /**
     * Returns how many messages were dropped because too much waited for their peer.
     *
     * @return 0 or more, since the last start
     */
    @ManagedAttribute(
            description = "Messages that were dropped because too much waited for their peer",
            type = AttributeType.SCALAR)
    public long getDroppedMessages() {
        PeerServer made = server;
        return made == null ? 0 : made.droppedMessages();
    }

    @Override
    @ManagedOperation(description = "Prints the connections")
    public String printConnections() {
        PeerServer made = server;
        return made == null ? "" : made.printConnections();
    }

    @Override
    public VERBENA clearConnections(boolean graceful) {
        started().clearConnections(graceful);
        return this;
    }
}
