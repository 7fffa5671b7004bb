package org.verbena.cm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.ffm.RdmaCm;
import org.verbena.cm.ffm.RdmaCmConstants;
import org.verbena.cm.ffm.RdmaCmId;
import org.verbena.cm.ffm.RdmaConnParam;
import org.verbena.cm.ffm.Sockaddr;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.QueuePairType;
import org.verbena.verbs.TransportType;
import org.verbena.verbs.ffm.Errno;

/**
 * A communication identifier: what a socket is to TCP. It listens, or is one end of a connection or of a datagram service.
 *
 * <pre>{@code
 * active:   create -> resolveAddress -> ADDR_RESOLVED -> resolveRoute -> ROUTE_RESOLVED -> createQueuePair -> connect -> ESTABLISHED
 * passive:  create -> bind -> listen;  CONNECT_REQUEST with a new id -> createQueuePair -> accept -> ESTABLISHED
 * end:      disconnect, or the peer -> DISCONNECTED -> close the queue pair -> close the id
 * }</pre>
 *
 * <p>Every step in capitals is an event on the id's {@link EventChannel}; the calls return at once. An error event ends the attempt: close
 * the id. All methods may be called on any thread. An id has one owner, who closes it; the ids of connection requests come to
 * whoever takes the event.
 *
 * <p>Source: rdma_cm(7)
 */
public final class CmId implements AutoCloseable {
    private final PortSpace portSpace;
    private final boolean datagram;
    private final long token;

    /** Changed by {@link #migrate} under both channels' locks. */
    private volatile EventChannel channel;

    /** The C struct; zero-length once closed. Written under the channel's lock. */
    private volatile MemorySegment struct;

    /** The queue pair made here; under the channel's lock. */
    private @Nullable QueuePair queuePair;

    private volatile @Nullable Object attachment;

    private CmId(EventChannel channel, long pointer, long token) {
        this.channel = channel;
        this.struct = RdmaCmId.at(pointer);
        PortSpace space = PortSpace.of(RdmaCmId.portSpace(struct));
        this.portSpace = space == null ? PortSpace.IB : space;
        this.datagram = RdmaCmId.qpType(struct) == QueuePairType.UD.value();
        this.token = token;
        RdmaCmId.context(struct, token);
        channel.register(token, this);
    }

    /** For the new id of a connection request, under the channel's lock. */
    static CmId adopt(EventChannel channel, long pointer) {
        return new CmId(channel, pointer, EventChannel.newToken());
    }

    /**
     * Makes an id.
     *
     * @param channel where its events arrive
     * @param portSpace connections or datagrams
     * @return to be closed by the caller
     * @throws CmException ENODEV without an RDMA device; EPERM for a port space that needs a privilege
     * @throws IllegalStateException if the channel is closed
     */
    public static CmId create(EventChannel channel, PortSpace portSpace) {
        channel.lock.lock();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment pointer = arena.allocate(ValueLayout.JAVA_LONG);
            long token = EventChannel.newToken();
            long channelPointer = channel.requireOpen();
            int rc = RdmaCm.createId(errno, channelPointer, pointer.address(), token, portSpace.value());
            if (rc != 0) {
                throw new CmException("rdma_create_id(" + portSpace + ")", Errno.get(errno));
            }
            long id = pointer.get(ValueLayout.JAVA_LONG, 0);
            try {
                requireKnownLayout(RdmaCmId.at(id), channelPointer, token, portSpace);
            } catch (UnsupportedOperationException unknown) {
                RdmaCm.destroyId(errno, id);
                throw unknown;
            }
            return new CmId(channel, id, token);
        } finally {
            channel.lock.unlock();
        }
    }

    /** Reads back what was just written, at both ends of the struct: a librdmacm with another layout is refused, not trusted. */
    private static void requireKnownLayout(MemorySegment id, long channel, long context, PortSpace portSpace) {
        boolean known = RdmaCmId.channel(id) == channel
                && RdmaCmId.context(id) == context
                && RdmaCmId.portSpace(id) == portSpace.value()
                && RdmaCmId.qpType(id) == (portSpace.isDatagram() ? QueuePairType.UD : QueuePairType.RC).value()
                && RdmaCmId.verbs(id) == 0
                && RdmaCmId.qp(id) == 0
                && RdmaCmId.srq(id) == 0;
        if (!known) {
            throw new UnsupportedOperationException(
                    RdmaCm.LIBRARY + " lays struct rdma_cm_id out in a way that this version of"
                            + " Verbena does not know (rdma-core 17 to 64 are known): use a newer Verbena, or an older rdma-core");
        }
    }

    /** One call of librdmacm that answers 0, or -1 and errno. */
    @FunctionalInterface
    private interface Call {
        int invoke(MemorySegment errno, long id, Arena arena);
    }

    @SuppressWarnings("LockNotBeforeTry") // the callers unlock
    private ReentrantLock lock() {
        while (true) {
            EventChannel current = channel;
            current.lock.lock();
            if (current == channel) {
                return current.lock;
            }
            current.lock.unlock();
        }
    }

    /** Under the lock. */
    private MemorySegment requireOpen() {
        MemorySegment open = struct;
        if (open.byteSize() == 0) {
            throw new IllegalStateException(this + " is closed");
        }
        return open;
    }

    /** Under the lock. librdmacm follows the device's pointer without looking in several calls. */
    private MemorySegment requireDevice(String function) {
        MemorySegment open = requireOpen();
        if (RdmaCmId.verbs(open) == 0) {
            throw new IllegalStateException(
                    function + " needs an id that is bound to a device: resolve an address first and"
                            + " wait for ADDR_RESOLVED, or bind to a device's own address; " + this);
        }
        return open;
    }

    private void call(String function, String arguments, boolean needsDevice, Call call) {
        ReentrantLock lock = lock();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment open = needsDevice ? requireDevice(function) : requireOpen();
            MemorySegment errno = Errno.newCapture(arena);
            if (call.invoke(errno, open.address(), arena) != 0) {
                throw new CmException(function + "(" + arguments + ")", Errno.get(errno));
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Gives the id a local address and, unless it is a wildcard, its device.
     *
     * @param localAddress resolved; port 0 takes any free one
     * @throws CmException EADDRNOTAVAIL or ENODEV if no RDMA device has the address, EADDRINUSE if the port is taken
     */
    public void bind(InetSocketAddress localAddress) {
        call(
                "rdma_bind_addr",
                format(localAddress),
                false,
                (errno, id, arena) -> RdmaCm.bindAddr(
                        errno, id, Sockaddr.write(arena, localAddress).address()));
    }

    /**
     * Starts to map the peer's IP address to a device; {@link CmEventType#ADDR_RESOLVED} or {@link CmEventType#ADDR_ERROR} follows.
     *
     * @param localAddress resolved, to come from; null for what the routing table says
     * @param remoteAddress resolved
     * @param timeoutMillis how long the kernel may take
     * @throws CmException ENODEV, ENETUNREACH ... if it is already clear that nothing leads there
     */
    public void resolveAddress(
            @Nullable InetSocketAddress localAddress, InetSocketAddress remoteAddress, int timeoutMillis) {
        requireTimeout(timeoutMillis);
        call(
                "rdma_resolve_addr",
                (localAddress == null ? "" : format(localAddress) + " -> ") + format(remoteAddress) + ", "
                        + timeoutMillis + " ms",
                false,
                (errno, id, arena) -> RdmaCm.resolveAddr(
                        errno,
                        id,
                        localAddress == null
                                ? 0
                                : Sockaddr.write(arena, localAddress).address(),
                        Sockaddr.write(arena, remoteAddress).address(),
                        timeoutMillis));
    }

    /**
     * Starts to look for the path to the peer; {@link CmEventType#ROUTE_RESOLVED} or {@link CmEventType#ROUTE_ERROR} follows.
     *
     * @param timeoutMillis how long the kernel may take
     * @throws CmException EINVAL if the address is not resolved
     * @throws IllegalStateException before {@link CmEventType#ADDR_RESOLVED}
     */
    public void resolveRoute(int timeoutMillis) {
        requireTimeout(timeoutMillis);
        call(
                "rdma_resolve_route",
                timeoutMillis + " ms",
                true,
                (errno, id, arena) -> RdmaCm.resolveRoute(errno, id, timeoutMillis));
    }

    private static void requireTimeout(int timeoutMillis) {
        if (timeoutMillis <= 0) {
            throw new IllegalArgumentException("timeoutMillis is " + timeoutMillis + ", but must be positive");
        }
    }

    /**
     * Makes the id's queue pair and readies it for receives; librdmacm moves it on as the connection comes up. Closing the queue pair
     * destroys it through librdmacm; close it before the id, and post its first receives before {@link #connect} or {@link #accept}.
     *
     * @param domain on the id's {@link #device()}; librdmacm gives all its ids on a device one context, so they can share it
     * @param options completion queues, sizes, shared receive queue and type: UD for datagrams, RC for connections
     * @return to be closed by the caller
     * @throws CmException EINVAL for sizes over the device's limits, ENOMEM if the device has no queue pairs or memory left
     * @throws IllegalArgumentException for a domain of another device or a type that does not fit the id
     * @throws IllegalStateException before the id has a device, or if it has a queue pair
     */
    public QueuePair createQueuePair(ProtectionDomain domain, QueuePairOptions options) {
        ReentrantLock lock = lock();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment open = requireDevice("rdma_create_qp");
            if (queuePair != null) {
                throw new IllegalStateException(this + " has a queue pair already: " + queuePair);
            }
            if (domain.context().nativeAddress() != RdmaCmId.verbs(open)) {
                throw new IllegalArgumentException(
                        domain + " is not on the id's own context; allocate it on CmId.device()");
            }
            if (datagram != (options.type() == QueuePairType.UD)) {
                throw new IllegalArgumentException("an id for " + portSpace + " takes "
                        + (datagram ? "UD queue pairs only" : "no UD queue pairs") + ", not " + options.type());
            }
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment attributes = options.toNative(arena);
            if (RdmaCm.createQp(errno, open.address(), domain.nativeAddress(), attributes.address()) != 0) {
                throw new CmException(
                        "rdma_create_qp(" + options.type() + ", " + options.capabilities() + ")", Errno.get(errno));
            }
            try {
                QueuePair created =
                        QueuePair.wrap(domain, RdmaCmId.qp(open), options.granted(attributes), this::destroyQueuePair);
                queuePair = created;
                return created;
            } catch (RuntimeException refused) {
                RdmaCm.destroyQp(errno, open.address());
                throw refused;
            }
        } finally {
            lock.unlock();
        }
    }

    /** What closing the queue pair comes to; under the lock, so that no event is being worked on with the queue pair meanwhile. */
    private void destroyQueuePair() {
        ReentrantLock lock = lock();
        try (Arena arena = Arena.ofConfined()) {
            RdmaCm.destroyQp(Errno.newCapture(arena), requireOpen().address());
            queuePair = null;
        } finally {
            lock.unlock();
        }
    }

    /**
     * The queue pair that was made on this id.
     *
     * @return null if there is none, or it was closed
     */
    public @Nullable QueuePair queuePair() {
        ReentrantLock lock = lock();
        try {
            return queuePair;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Listens; {@link CmEventType#CONNECT_REQUEST} follows for every peer that connects.
     *
     * @param backlog how many requests may wait for their event; 0 for the kernel's choice (iWARP needs more than 0)
     * @throws CmException EINVAL if the id is not bound, EADDRINUSE if another one listens there
     */
    public void listen(int backlog) {
        call("rdma_listen", "backlog=" + backlog, false, (errno, id, arena) -> RdmaCm.listen(errno, id, backlog));
    }

    /**
     * Starts to connect; {@link CmEventType#ESTABLISHED}, {@link CmEventType#REJECTED}, {@link CmEventType#UNREACHABLE} or {@link
     * CmEventType#CONNECT_ERROR} follows. On a datagram id, starts to look the service up.
     *
     * @param parameters what to ask for
     * @throws CmException EINVAL if the route is not resolved or the device cannot have so many reads
     * @throws IllegalArgumentException for private data over the limit: 56 bytes on InfiniBand and RoCE (180 for datagrams), 251 on iWARP
     * @throws IllegalStateException before the id has a device
     */
    public void connect(ConnectionParameters parameters) {
        call("rdma_connect", parameters.toString(), true, (errno, id, arena) -> {
            checkPrivateData(PrivateDataLimit.CONNECT, parameters.privateData().length);
            return RdmaCm.connect(errno, id, write(arena, parameters));
        });
    }

    /**
     * Accepts a connection request; {@link CmEventType#ESTABLISHED} or an error event follows. A datagram lookup is answered, and
     * nothing follows.
     *
     * @param parameters what to answer
     * @throws CmException EINVAL if the id is not that of a request or the device cannot have so many reads
     * @throws IllegalArgumentException for private data over the limit: 196 bytes on InfiniBand and RoCE (136 for datagrams), 251 on
     *     iWARP
     */
    public void accept(ConnectionParameters parameters) {
        call("rdma_accept", parameters.toString(), true, (errno, id, arena) -> {
            checkPrivateData(PrivateDataLimit.ACCEPT, parameters.privateData().length);
            return RdmaCm.accept(errno, id, write(arena, parameters));
        });
    }

    /**
     * Turns a connection request down. The id can only be closed then.
     *
     * @param privateData told to the peer; may be empty
     * @throws CmException EINVAL if the id is not that of a request
     * @throws IllegalArgumentException for private data over the limit: 148 bytes on InfiniBand and RoCE (136 for datagrams), 251 on
     *     iWARP
     */
    public void reject(byte[] privateData) {
        call("rdma_reject", privateData.length + " bytes", true, (errno, id, arena) -> {
            checkPrivateData(PrivateDataLimit.REJECT, privateData.length);
            MemorySegment bytes = arena.allocateFrom(ValueLayout.JAVA_BYTE, privateData);
            return RdmaCm.reject(errno, id, bytes.address(), (byte) privateData.length);
        });
    }

    /**
     * Ends the connection: moves the queue pair to its error state, so that what is posted completes as flushed, and tells the peer.
     * {@link CmEventType#DISCONNECTED} follows at the peer, and here when the peer has answered. On InfiniBand and RoCE the peer's answer is
     * its own disconnect, or closing its id: so whoever hears {@link CmEventType#DISCONNECTED} without having asked calls this too, or
     * the other side waits for seconds.
     *
     * @throws CmException EINVAL if there is no connection
     */
    public void disconnect() {
        call("rdma_disconnect", "", true, (errno, id, arena) -> RdmaCm.disconnect(errno, id));
    }

    /**
     * Completes a connection whose queue pair was made apart from the id, after {@link CmEventType#CONNECT_RESPONSE}.
     *
     * @throws CmException EINVAL if the id has a queue pair, or no answer has come
     */
    public void establish() {
        call("rdma_establish", "", true, (errno, id, arena) -> RdmaCm.establish(errno, id));
    }

    /**
     * Moves the id, with the events it has waiting, to another channel.
     *
     * @param target the channel
     * @throws CmException if the kernel refuses; the id stays where it is
     */
    public void migrate(EventChannel target) {
        while (true) {
            EventChannel source = channel;
            if (source == target) {
                return;
            }
            EventChannel first = source.sequence < target.sequence ? source : target;
            EventChannel second = first == source ? target : source;
            first.lock.lock();
            second.lock.lock();
            try (Arena arena = Arena.ofConfined()) {
                if (source != channel) {
                    continue;
                }
                MemorySegment errno = Errno.newCapture(arena);
                long id = requireOpen().address();
                long targetPointer = target.requireOpen();
                if (RdmaCm.migrateId(errno, id, targetPointer) != 0) {
                    throw new CmException("rdma_migrate_id()", Errno.get(errno));
                }
                target.register(token, this);
                source.unregister(token);
                channel = target;
                return;
            } finally {
                second.lock.unlock();
                first.lock.unlock();
            }
        }
    }

    /**
     * Sets the IP type of service, or the InfiniBand traffic class, of what is resolved and connected from here on.
     *
     * @param typeOfService 0 to 255, RFC 2474
     * @throws CmException if the kernel refuses
     */
    public void setTypeOfService(int typeOfService) {
        requireRange("typeOfService", typeOfService, 255);
        setByteOption("TOS", RdmaCmConstants.RDMA_OPTION_ID_TOS, typeOfService);
    }

    /**
     * Allows a port that an id on the same address has, if that one allows it too; before {@link #bind}.
     *
     * @param reuse as SO_REUSEADDR
     * @throws CmException EINVAL if the id is bound
     */
    public void setReuseAddress(boolean reuse) {
        setIntOption("REUSEADDR", RdmaCmConstants.RDMA_OPTION_ID_REUSEADDR, reuse ? 1 : 0);
    }

    /**
     * Keeps an IPv6 wildcard from taking IPv4 as well; before {@link #bind}.
     *
     * @param only as IPV6_V6ONLY
     * @throws CmException EINVAL if the id is bound
     */
    public void setAddressFamilyOnly(boolean only) {
        setIntOption("AFONLY", RdmaCmConstants.RDMA_OPTION_ID_AFONLY, only ? 1 : 0);
    }

    /**
     * Sets how long the queue pair waits for an acknowledgement before it repeats; before {@link #createQueuePair}.
     *
     * @param exponent 0 to 31: 4.096 us times two to this power; 0 waits for ever
     * @throws CmException if the kernel refuses
     */
    public void setAckTimeout(int exponent) {
        requireRange("exponent", exponent, 31);
        setByteOption("ACK_TIMEOUT", RdmaCmConstants.RDMA_OPTION_ID_ACK_TIMEOUT, exponent);
    }

    private static void requireRange(String name, int value, int max) {
        if (value < 0 || value > max) {
            throw new IllegalArgumentException(name + " is " + value + ", but must be 0 to " + max);
        }
    }

    private void setByteOption(String name, int option, int value) {
        call(
                "rdma_set_option",
                name + ", " + value,
                false,
                (errno, id, arena) -> RdmaCm.setOption(
                        errno,
                        id,
                        RdmaCmConstants.RDMA_OPTION_ID,
                        option,
                        arena.allocateFrom(ValueLayout.JAVA_BYTE, (byte) value).address(),
                        Byte.BYTES));
    }

    private void setIntOption(String name, int option, int value) {
        call(
                "rdma_set_option",
                name + ", " + value,
                false,
                (errno, id, arena) -> RdmaCm.setOption(
                        errno,
                        id,
                        RdmaCmConstants.RDMA_OPTION_ID,
                        option,
                        arena.allocateFrom(ValueLayout.JAVA_INT, value).address(),
                        Integer.BYTES));
    }

    /** Under the lock, with a device. */
    private void checkPrivateData(PrivateDataLimit limit, int lengthBytes) {
        limit.check(
                lengthBytes,
                Cm.deviceAt(RdmaCmId.verbs(struct)).device().transportType() == TransportType.IWARP,
                datagram,
                Sockaddr.family(RdmaCmId.localAddress(struct)) == Sockaddr.AF_IB);
    }

    private static long write(Arena arena, ConnectionParameters parameters) {
        MemorySegment param = arena.allocate(RdmaConnParam.LAYOUT);
        RdmaConnParam.privateData(param, parameters.privateData(), arena);
        RdmaConnParam.responderResources(param, parameters.responderResources());
        RdmaConnParam.initiatorDepth(param, parameters.initiatorDepth());
        RdmaConnParam.flowControl(param, parameters.flowControl());
        RdmaConnParam.retryCount(param, parameters.retryCount());
        RdmaConnParam.rnrRetryCount(param, parameters.rnrRetryCount());
        RdmaConnParam.srq(param, parameters.sharedReceiveQueue());
        RdmaConnParam.qpNum(param, parameters.queuePairNumber());
        return param.address();
    }

    /**
     * What the id is for.
     *
     * @return as given, or as the listening id's
     */
    public PortSpace portSpace() {
        return portSpace;
    }

    /**
     * Whether it is for datagrams.
     *
     * @return false for connections
     */
    public boolean isDatagram() {
        return datagram;
    }

    /**
     * Where its events arrive.
     *
     * @return the channel
     */
    public EventChannel channel() {
        return channel;
    }

    /**
     * The device it is bound to. It belongs to librdmacm, stays open as long as the process and is the same object for every id on that
     * device; make protection domains and completion queues on it.
     *
     * @return null before {@link CmEventType#ADDR_RESOLVED} and for wildcard listeners
     */
    public @Nullable Context device() {
        ReentrantLock lock = lock();
        try {
            long verbs = RdmaCmId.verbs(requireOpen());
            return verbs == 0 ? null : Cm.deviceAt(verbs);
        } finally {
            lock.unlock();
        }
    }

    /**
     * The device's port that it is bound to.
     *
     * @return from 1; 0 before there is a device
     */
    public int portNumber() {
        ReentrantLock lock = lock();
        try {
            return RdmaCmId.portNumber(requireOpen());
        } finally {
            lock.unlock();
        }
    }

    /**
     * The local address.
     *
     * @return null before it is known, and for InfiniBand addresses
     */
    public @Nullable InetSocketAddress localAddress() {
        ReentrantLock lock = lock();
        try {
            return Sockaddr.read(RdmaCmId.localAddress(requireOpen()));
        } finally {
            lock.unlock();
        }
    }

    /**
     * The peer's address.
     *
     * @return null before it is known, for listeners, and for InfiniBand addresses
     */
    public @Nullable InetSocketAddress remoteAddress() {
        ReentrantLock lock = lock();
        try {
            return Sockaddr.read(RdmaCmId.remoteAddress(requireOpen()));
        } finally {
            lock.unlock();
        }
    }

    /**
     * What the id's user tied to it.
     *
     * @return null if nothing
     */
    public @Nullable Object attachment() {
        return attachment;
    }

    /**
     * Ties something to the id, to be found again when an event comes.
     *
     * @param object or null
     */
    public void attach(@Nullable Object object) {
        attachment = object;
    }

    /**
     * Whether it was closed.
     *
     * @return false while it is open
     */
    public boolean isClosed() {
        return struct.byteSize() == 0;
    }

    /**
     * Destroys the id: gives up what is under way, rejects a request that was not answered, drops a connection without telling the peer's
     * application more than DISCONNECTED. Does nothing the second time.
     *
     * @throws IllegalStateException while its queue pair is open
     */
    @Override
    public void close() {
        ReentrantLock lock = lock();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment open = struct;
            if (open.byteSize() == 0) {
                return;
            }
            QueuePair live = queuePair;
            if (live != null) {
                throw new IllegalStateException(this + " still has " + live + "; close that first");
            }
            MemorySegment errno = Errno.newCapture(arena);
            struct = MemorySegment.NULL;
            channel.unregister(token);
            if (RdmaCm.destroyId(errno, open.address()) != 0) {
                throw new CmException("rdma_destroy_id()", Errno.get(errno));
            }
        } finally {
            lock.unlock();
        }
    }

    private static String format(InetSocketAddress address) {
        return address.isUnresolved()
                ? address.getHostString() + ":" + address.getPort()
                : (address.getAddress().getHostAddress().contains(":")
                                ? "[" + address.getAddress().getHostAddress() + "]"
                                : address.getAddress().getHostAddress())
                        + ":" + address.getPort();
    }

    @Override
    public String toString() {
        return "CmId " + token + " (" + portSpace + (isClosed() ? ", closed)" : ")");
    }
}
