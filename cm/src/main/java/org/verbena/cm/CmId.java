package org.verbena.cm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.ffm.CmLibrary;
import org.verbena.cm.ffm.RdmaCm;
import org.verbena.cm.ffm.RdmaCmConstants;
import org.verbena.cm.ffm.RdmaCmId;
import org.verbena.cm.ffm.Sockaddr;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairAttributes;
import org.verbena.verbs.QueuePairExtension;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvEce;
import org.verbena.verbs.ffm.IbvQpAttr;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.queue.EnhancedConnection;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.queue.QueuePairType;

/**
 * A communication identifier, the equivalent of a socket. It listens, or is one end of a connection or of a datagram
 * service.
 *
 * <pre>{@code
 * active:   create -> resolveAddress -> ADDR_RESOLVED -> resolveRoute -> ROUTE_RESOLVED
 *                  -> createQueuePair -> connect -> ESTABLISHED
 * passive:  create -> bind -> listen
 *           CONNECT_REQUEST with a new id -> createQueuePair -> accept -> ESTABLISHED
 * end:      disconnect, or the peer -> DISCONNECTED -> close the queue pair -> close the id
 * }</pre>
 *
 * <p>Every step in capitals is an event on the id's {@link EventChannel}; the calls return immediately. An error event
 * ends the attempt: close the id. All methods may be called on any thread. An id has one owner, who closes it. The code
 * that takes the event of a connection request owns the new id.
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

    /** Under the channel's lock. */
    private final MulticastGroups groups = new MulticastGroups();

    private CmId(EventChannel channel, long pointer, long token) {
        this.channel = channel;
        this.struct = Pointers.view(pointer, RdmaCmId.SIZE);
        PortSpace space = PortSpace.of(struct.get(CStruct.ENUM, RdmaCmId.PS));
        this.portSpace = space == null ? PortSpace.IB : space;
        this.datagram = struct.get(CStruct.ENUM, RdmaCmId.QP_TYPE) == QueuePairType.UD.value();
        this.token = token;
        struct.set(CStruct.PTR, RdmaCmId.CONTEXT, token);
        channel.register(token, this);
    }

    /** For the new id of a connection request, under the channel's lock. */
    static CmId adopt(EventChannel channel, long pointer) {
        return new CmId(channel, pointer, EventChannel.newToken());
    }

    /**
     * Creates an id.
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
                CmLibrary.requireKnownLayout(
                        Pointers.view(id, RdmaCmId.SIZE),
                        channelPointer,
                        token,
                        portSpace.value(),
                        (portSpace.isDatagram() ? QueuePairType.UD : QueuePairType.RC).value());
            } catch (UnsupportedOperationException unknown) {
                RdmaCm.destroyId(errno, id);
                throw unknown;
            }
            return new CmId(channel, id, token);
        } finally {
            channel.lock.unlock();
        }
    }

    /** One call of librdmacm that returns 0, or -1 and errno. */
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

    private <T> @Nullable T locked(Supplier<@Nullable T> read) {
        ReentrantLock lock = lock();
        try {
            return read.get();
        } finally {
            lock.unlock();
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

    /** Under the lock. Several calls of librdmacm dereference the device's pointer without a check. */
    private MemorySegment requireDevice(String function) {
        MemorySegment open = requireOpen();
        if (open.get(CStruct.PTR, RdmaCmId.VERBS) == 0) {
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
            int rc = call.invoke(errno, open.address(), arena);
            if (rc != 0) {
                throw new CmException(function + "(" + arguments + ")", Errno.get(errno));
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Gives the id a local address and, unless it is a wildcard, its device.
     *
     * @param localAddress a resolved {@link InetSocketAddress}, whose port 0 takes any free one, or for {@link
     *     PortSpace#IB} an {@link InfinibandAddress}
     * @throws CmException EADDRNOTAVAIL or ENODEV if no RDMA device has the address, EADDRINUSE if the port is taken
     * @throws IllegalArgumentException for another kind of address
     */
    public void bind(SocketAddress localAddress) {
        call(
                "rdma_bind_addr",
                Addresses.format(localAddress),
                false,
                (errno, id, arena) -> RdmaCm.bindAddr(errno, id, Addresses.write(arena, localAddress)));
    }

    /**
     * Starts to map the peer's address to a device; {@link CmEventType#ADDR_RESOLVED} or {@link
     * CmEventType#ADDR_ERROR} follows.
     *
     * @param localAddress the source address, as {@link #bind} takes it; null to let the routing table choose
     * @param remoteAddress the peer's, of the same kind
     * @param timeoutMillis how long the kernel may take
     * @throws CmException ENODEV, ENETUNREACH ... if it is already clear that no route leads there
     * @throws IllegalArgumentException for another kind of address
     */
    public void resolveAddress(@Nullable SocketAddress localAddress, SocketAddress remoteAddress, int timeoutMillis) {
        requireTimeout(timeoutMillis);
        call(
                "rdma_resolve_addr",
                (localAddress == null ? "" : Addresses.format(localAddress) + " -> ") + Addresses.format(remoteAddress)
                        + ", " + timeoutMillis + " ms",
                false,
                (errno, id, arena) -> RdmaCm.resolveAddr(
                        errno,
                        id,
                        localAddress == null ? 0 : Addresses.write(arena, localAddress),
                        Addresses.write(arena, remoteAddress),
                        timeoutMillis));
    }

    /**
     * Starts to look for the path to the peer; {@link CmEventType#ROUTE_RESOLVED} or {@link CmEventType#ROUTE_ERROR}
     * follows.
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

    /**
     * Creates the id's queue pair and prepares it for receives; librdmacm moves it to its next states as the connection
     * is established. Close the queue pair before the id, and post its first receives before {@link #connect} or {@link
     * #accept}. Closing it leaves the multicast groups that the id has joined.
     *
     * @param domain on the id's {@link #device()}; librdmacm gives all its ids on a device one context, so they can
     *     share it
     * @param options completion queues, sizes, shared receive queue and type: UD for datagrams, RC for connections
     * @return to be closed by the caller
     * @throws CmException EINVAL for sizes over the device's limits, ENOMEM if the device has no queue pairs or memory
     *     left
     * @throws IllegalArgumentException for a domain of another device or a type that does not fit the id
     * @throws IllegalStateException before the id has a device, or if it has a queue pair
     */
    public QueuePair createQueuePair(ProtectionDomain domain, QueuePairOptions options) {
        return makeQueuePair(domain, options, null);
    }

    /**
     * Creates the id's queue pair with more options than {@link QueuePairOptions}: a {@link QueuePair#builder()
     * builder} of work requests, for example. Otherwise like {@link #createQueuePair(ProtectionDomain,
     * QueuePairOptions)}.
     *
     * @param domain on the id's {@link #device()}
     * @param options completion queues, sizes, shared receive queue and type
     * @param extension the additional options
     * @return to be closed by the caller
     * @throws CmException EOPNOTSUPP or EINVAL if the device does not support the extension
     * @throws IllegalArgumentException for a domain of another device, or a type or extension that does not fit
     * @throws IllegalStateException before the id has a device, or if it has a queue pair
     */
    public QueuePair createQueuePair(ProtectionDomain domain, QueuePairOptions options, QueuePairExtension extension) {
        return makeQueuePair(domain, options, Objects.requireNonNull(extension));
    }

    private QueuePair makeQueuePair(
            ProtectionDomain domain, QueuePairOptions options, @Nullable QueuePairExtension extension) {
        ReentrantLock lock = lock();
        try {
            MemorySegment open = requireDevice(extension == null ? "rdma_create_qp" : "rdma_create_qp_ex");
            if (queuePair != null) {
                throw new IllegalStateException(this + " has a queue pair already: " + queuePair);
            }
            if (datagram != (options.type() == QueuePairType.UD)) {
                throw new IllegalArgumentException("an id for " + portSpace + " takes "
                        + (datagram ? "UD queue pairs only" : "no UD queue pairs") + ", not " + options.type());
            }
            QueuePair created = QueuePairs.create(open, domain, options, extension, this::destroyQueuePair);
            queuePair = created;
            return created;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Destroys the queue pair when it is closed; under the lock, so that no event that involves it is being handled
     * meanwhile. It does the same as rdma_destroy_qp, which, however, forgets the queue pair even if the device refuses
     * to destroy it, and does not report that.
     */
    private void destroyQueuePair() {
        ReentrantLock lock = lock();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment open = requireOpen();
            groups.leaveAll(arena, open.address());
            int errno = LibIbverbs.destroyQp(open.get(CStruct.PTR, RdmaCmId.QP));
            if (errno != 0) {
                throw new CmException("ibv_destroy_qp(" + queuePair + groups + ")", errno);
            }
            open.set(CStruct.PTR, RdmaCmId.QP, 0);
            queuePair = null;
        } finally {
            lock.unlock();
        }
    }

    /**
     * The queue pair that was created on this id.
     *
     * @return null if there is none, or it was closed
     */
    public @Nullable QueuePair queuePair() {
        return locked(() -> queuePair);
    }

    /**
     * Listens; {@link CmEventType#CONNECT_REQUEST} follows for every peer that connects.
     *
     * @param backlog how many requests may wait for their event; 0 for the kernel's choice (iWARP needs more than 0)
     * @throws CmException EINVAL if the id is not bound, EADDRINUSE if another id listens there
     */
    public void listen(int backlog) {
        call("rdma_listen", "backlog=" + backlog, false, (errno, id, arena) -> RdmaCm.listen(errno, id, backlog));
    }

    /**
     * Starts to connect; {@link CmEventType#ESTABLISHED}, {@link CmEventType#REJECTED}, {@link CmEventType#UNREACHABLE}
     * or {@link CmEventType#CONNECT_ERROR} follows. On a datagram id, starts to look up the service.
     *
     * @param parameters what to ask for
     * @throws CmException EINVAL if the route is not resolved or the device cannot have so many reads
     * @throws IllegalArgumentException for private data over the limit: 56 bytes on InfiniBand and RoCE (180 for
     *     datagrams), 251 on iWARP
     * @throws IllegalStateException before the id has a device
     */
    public void connect(ConnectionParameters parameters) {
        call("rdma_connect", parameters.toString(), true, (errno, id, arena) -> {
            PrivateDataLimit.CONNECT.check(struct, datagram, parameters.privateData().length);
            return RdmaCm.connect(errno, id, parameters.write(arena));
        });
    }

    /**
     * Accepts a connection request; {@link CmEventType#ESTABLISHED} or an error event follows. On InfiniBand and RoCE
     * it follows when the peer has taken its own {@link CmEventType#ESTABLISHED} from its event channel: a thread that
     * serves both ends waits for the other one's first. A datagram lookup is answered, and nothing follows.
     *
     * @param parameters what to answer
     * @throws CmException EINVAL if it is not the id of a request or the device cannot have so many reads
     * @throws IllegalArgumentException for private data over the limit: 196 bytes on InfiniBand and RoCE (136 for
     *     datagrams), 251 on iWARP
     */
    public void accept(ConnectionParameters parameters) {
        call("rdma_accept", parameters.toString(), true, (errno, id, arena) -> {
            PrivateDataLimit.ACCEPT.check(struct, datagram, parameters.privateData().length);
            return RdmaCm.accept(errno, id, parameters.write(arena));
        });
    }

    /**
     * Rejects a connection request. Afterwards the id can only be closed.
     *
     * @param privateData sent to the peer; may be empty
     * @throws CmException EINVAL if it is not the id of a request
     * @throws IllegalArgumentException for private data over the limit: 148 bytes on InfiniBand and RoCE (136 for
     *     datagrams), 251 on iWARP
     */
    public void reject(byte[] privateData) {
        reject("rdma_reject", RdmaCm::reject, privateData);
    }

    /**
     * Rejects a connection request because of its adapter's options; the peer sees {@link
     * RejectReason#VENDOR_OPTION_NOT_SUPPORTED}.
     *
     * @param privateData sent to the peer; may be empty
     * @throws CmException EINVAL if it is not the id of a request
     * @throws IllegalArgumentException for private data over the limit, as {@link #reject}
     */
    public void rejectEnhancedConnection(byte[] privateData) {
        reject("rdma_reject_ece", RdmaCm::rejectEce, privateData);
    }

    @FunctionalInterface
    private interface Rejection {
        int invoke(MemorySegment errno, long id, long privateData, byte length);
    }

    private void reject(String function, Rejection rejection, byte[] privateData) {
        call(function, privateData.length + " bytes", true, (errno, id, arena) -> {
            PrivateDataLimit.REJECT.check(struct, datagram, privateData.length);
            long bytes = arena.allocateFrom(ValueLayout.JAVA_BYTE, privateData).address();
            return rejection.invoke(errno, id, bytes, (byte) privateData.length);
        });
    }

    /**
     * Proposes or answers options of the adapter's vendor, for a queue pair created separately from the id; before
     * {@link #connect} or {@link #accept}.
     *
     * @param options as the queue pair has them
     * @throws CmException EINVAL if the id has a queue pair, or the vendor id is 0
     */
    public void setLocalEnhancedConnection(EnhancedConnection options) {
        call("rdma_set_local_ece", options.toString(), false, (errno, id, arena) -> {
            MemorySegment ece = arena.allocate(IbvEce.LAYOUT);
            ece.set(ValueLayout.JAVA_INT, IbvEce.VENDOR_ID, options.vendorId());
            ece.set(ValueLayout.JAVA_INT, IbvEce.OPTIONS, options.options());
            return RdmaCm.setLocalEce(errno, id, ece.address());
        });
    }

    /** Under the lock: the address of the C struct. */
    long pointer() {
        return struct.address();
    }

    /**
     * The attributes that move a queue pair created separately from the id to a state: INIT before {@link #connect} or
     * {@link #accept}, then RTR and RTS.
     *
     * @param state INIT, RTR or RTS
     * @return for {@link QueuePair#modify}
     * @throws CmException EINVAL if the connection has not reached that state
     */
    public QueuePairAttributes queuePairAttributes(QueuePairState state) {
        ReentrantLock lock = lock();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment open = requireDevice("rdma_init_qp_attr");
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment attributes = arena.allocate(IbvQpAttr.LAYOUT);
            MemorySegment mask = arena.allocate(ValueLayout.JAVA_INT);
            attributes.set(ValueLayout.JAVA_INT, IbvQpAttr.QP_STATE, state.value());
            if (RdmaCm.initQpAttr(errno, open.address(), attributes.address(), mask.address()) != 0) {
                throw new CmException("rdma_init_qp_attr(" + state + ")", Errno.get(errno));
            }
            return QueuePairAttributes.read(attributes, mask.get(ValueLayout.JAVA_INT, 0));
        } finally {
            lock.unlock();
        }
    }

    /**
     * Tells the connection manager that the queue pair received a message before the connection's last handshake
     * message: the connection is established.
     *
     * @param event {@link AsyncEventType#COMM_EST}, what the device reports then; the kernel accepts no other
     * @throws CmException EINVAL for another event, or in another state
     */
    public void notify(AsyncEventType event) {
        call("rdma_notify", event.toString(), true, (errno, id, arena) -> RdmaCm.notify(errno, id, event.value()));
    }

    /**
     * Starts to join a multicast group; {@link CmEventType#MULTICAST_JOIN} with the parameters to send to it, or {@link
     * CmEventType#MULTICAST_ERROR}, follows. The id's queue pair is attached to the group.
     *
     * @param group its address
     * @param membership send-only needs a kernel and adapter that support it
     * @throws CmException if it is clear that it cannot be joined
     * @throws IllegalStateException before the id has a device
     */
    public void joinMulticast(InetSocketAddress group, MulticastMembership membership) {
        ReentrantLock lock = lock();
        try {
            long context = EventChannel.newToken();
            groups.add(context, group);
            try {
                boolean full = membership == MulticastMembership.FULL;
                call(
                        full ? "rdma_join_multicast" : "rdma_join_multicast_ex",
                        Addresses.format(group) + (full ? "" : ", " + membership),
                        true,
                        (errno, id, arena) -> MulticastGroups.join(errno, id, arena, group, membership, context));
            } catch (RuntimeException refused) {
                groups.forget(context);
                throw refused;
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Leaves a multicast group, or stops joining it. Messages that have arrived may still complete.
     *
     * @param group as it was joined
     * @throws CmException EADDRNOTAVAIL if it was not joined
     */
    public void leaveMulticast(InetSocketAddress group) {
        ReentrantLock lock = lock();
        try {
            call(
                    "rdma_leave_multicast",
                    Addresses.format(group),
                    true,
                    (errno, id, arena) -> RdmaCm.leaveMulticast(errno, id, Addresses.write(arena, group)));
            groups.forget(group);
        } finally {
            lock.unlock();
        }
    }

    /** Under the lock: the group that was joined with a context. */
    @Nullable InetSocketAddress groupOf(long context) {
        return groups.of(context);
    }

    /**
     * Ends the connection: moves the queue pair to its error state, so that posted work completes as flushed, and
     * notifies the peer. {@link CmEventType#DISCONNECTED} follows at the peer, and here when the peer has answered. On
     * InfiniBand and RoCE the peer's answer is its own disconnect, or closing its id: so a side that gets {@link
     * CmEventType#DISCONNECTED} without having called this calls this too, or the other side waits for seconds.
     *
     * @throws CmException EINVAL if there is no connection
     */
    public void disconnect() {
        call("rdma_disconnect", "", true, (errno, id, arena) -> RdmaCm.disconnect(errno, id));
    }

    /**
     * Completes a connection whose queue pair was created separately from the id, after {@link
     * CmEventType#CONNECT_RESPONSE}.
     *
     * @throws CmException EINVAL if the id has a queue pair, or no answer has arrived
     */
    public void establish() {
        call("rdma_establish", "", true, (errno, id, arena) -> RdmaCm.establish(errno, id));
    }

    /**
     * Moves the id, with its pending events, to another channel. The kernel wakes nobody for these: a program that
     * waits for the descriptor of the other channel with epoll calls {@link EventChannel#tryGet} once after this.
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
     * Sets the IP type of service, or the InfiniBand traffic class, of addresses resolved and connections made from now
     * on.
     *
     * @param typeOfService 0 to 255, RFC 2474
     * @throws CmException if the kernel refuses
     */
    public void setTypeOfService(int typeOfService) {
        setOption(IdOption.TOS, typeOfService);
    }

    /**
     * Lets this id share the port of another id on the same address, if that id allows it too; before {@link #bind}.
     *
     * @param reuse as SO_REUSEADDR
     * @throws CmException EINVAL if the id is bound
     */
    public void setReuseAddress(boolean reuse) {
        setOption(IdOption.REUSEADDR, reuse ? 1 : 0);
    }

    /**
     * Restricts an IPv6 wildcard to IPv6; before {@link #bind}.
     *
     * @param only as IPV6_V6ONLY
     * @throws CmException EINVAL if the id is bound
     */
    public void setAddressFamilyOnly(boolean only) {
        setOption(IdOption.AFONLY, only ? 1 : 0);
    }

    /**
     * Sets how long the queue pair waits for an acknowledgement before it retransmits; before {@link #createQueuePair}.
     *
     * @param exponent 0 to 31: 4.096 us times two to this power; 0 waits for ever
     * @throws CmException if the kernel refuses
     */
    public void setAckTimeout(int exponent) {
        setOption(IdOption.ACK_TIMEOUT, exponent);
    }

    /**
     * Sets the path to the peer, in place of {@link #resolveRoute}; {@link CmEventType#ROUTE_RESOLVED} follows.
     *
     * @param route as {@link AddressInfo#route} has it
     * @throws CmException EINVAL before {@link CmEventType#ADDR_RESOLVED}, or if it is no path of the device
     */
    public void setRoute(byte[] route) {
        setOption(
                "IB_PATH, " + route.length + " bytes",
                RdmaCmConstants.RDMA_OPTION_IB,
                RdmaCmConstants.RDMA_OPTION_IB_PATH,
                route);
    }

    private static void requireTimeout(int millis) {
        if (millis < 1) {
            throw new IllegalArgumentException("timeoutMillis is " + millis + ", but must be 1 or more");
        }
    }

    private void setOption(IdOption option, int value) {
        setOption(option + ", " + value, RdmaCmConstants.RDMA_OPTION_ID, option.number(), option.bytes(value));
    }

    private void setOption(String description, int level, int option, byte[] value) {
        call(
                "rdma_set_option",
                description,
                false,
                (errno, id, arena) -> RdmaCm.setOption(
                        errno,
                        id,
                        level,
                        option,
                        arena.allocateFrom(ValueLayout.JAVA_BYTE, value).address(),
                        value.length));
    }

    /**
     * The port space of the id.
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
     * The channel of its events.
     *
     * @return the channel
     */
    public EventChannel channel() {
        return channel;
    }

    /**
     * The device it is bound to. It belongs to librdmacm and is the same object for every id on that device; create
     * protection domains and completion queues on it. It stays open as {@link Cm#devices()} says.
     *
     * @return null before {@link CmEventType#ADDR_RESOLVED}, for wildcard listeners, and once a removed device is
     *     closed
     */
    public @Nullable Context device() {
        return locked(() -> {
            long verbs = requireOpen().get(CStruct.PTR, RdmaCmId.VERBS);
            return verbs == 0 ? null : Cm.deviceAt(verbs);
        });
    }

    /**
     * The device's port that it is bound to.
     *
     * @return from 1; 0 before there is a device
     */
    public int portNumber() {
        return Objects.requireNonNull(
                locked(() -> Byte.toUnsignedInt(requireOpen().get(CStruct.U8, RdmaCmId.PORT_NUM))));
    }

    /**
     * The local address.
     *
     * @return null before it is known, and for InfiniBand addresses
     */
    public @Nullable InetSocketAddress localAddress() {
        return locked(() -> Sockaddr.read(Sockaddr.local(requireOpen())));
    }

    /**
     * The peer's address.
     *
     * @return null before it is known, for listeners, and for InfiniBand addresses
     */
    public @Nullable InetSocketAddress remoteAddress() {
        return locked(() -> Sockaddr.read(Sockaddr.remote(requireOpen())));
    }

    /**
     * The local InfiniBand address.
     *
     * @return null if the id has none of this kind
     */
    public @Nullable InfinibandAddress localInfinibandAddress() {
        return locked(() -> InfinibandAddress.read(Sockaddr.local(requireOpen())));
    }

    /**
     * The object that is attached to the id.
     *
     * @return null if nothing
     */
    public @Nullable Object attachment() {
        return attachment;
    }

    /**
     * Attaches an object to the id, to find it again when an event arrives.
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
     * Destroys the id: cancels pending steps, leaves multicast groups, rejects an unanswered request, and drops a
     * connection, which the peer's application only sees as DISCONNECTED. Idempotent.
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
            // The kernel forgets the groups along with the id, but librdmacm would keep its memory of them.
            groups.leaveAll(arena, open.address());
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

    @Override
    public String toString() {
        return "CmId " + token + " (" + portSpace + (isClosed() ? ", closed)" : ")");
    }
}
