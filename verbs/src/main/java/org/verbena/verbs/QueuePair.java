package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.device.TransportType;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvContextOps;
import org.verbena.verbs.ffm.IbvEce;
import org.verbena.verbs.ffm.IbvQp;
import org.verbena.verbs.ffm.IbvQpAttr;
import org.verbena.verbs.ffm.IbvQpCap;
import org.verbena.verbs.ffm.IbvQpInitAttr;
import org.verbena.verbs.ffm.IbvQpInitAttrEx;
import org.verbena.verbs.ffm.IbvQpRateLimitAttr;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.ffm.VerbsOps;
import org.verbena.verbs.queue.EnhancedConnection;
import org.verbena.verbs.queue.QueuePairAttribute;
import org.verbena.verbs.queue.QueuePairState;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.queue.RateLimit;
import org.verbena.verbs.work.WorkRequestOpcode;

/**
 * A send queue and a receive queue, in the states that {@link #modify} takes it through. Its queues belong to one
 * thread at a time, and so does closing it; {@code modify} and {@code query} may be called on any.
 *
 * <pre>{@code
 *   RESET --1--> INIT --2--> RTR --3--> RTS <--4--> SQD
 *                                        |  ^
 *                 a send of UC, UD fails v  | 5
 *                                        SQE
 *   any --> ERR (an error, or modify)      any --> RESET (modify)
 *
 *   needs of RC:  1  PORT, PKEY_INDEX, ACCESS_FLAGS
 *                 2  AV, PATH_MTU, DEST_QPN, RQ_PSN, MAX_DEST_RD_ATOMIC, MIN_RNR_TIMER
 *                 3  SQ_PSN, TIMEOUT, RETRY_CNT, RNR_RETRY, MAX_QP_RD_ATOMIC
 *                 4, 5  nothing; 4 allows EN_SQD_ASYNC_NOTIFY
 *   UC and XRC_SEND lack the last two of 2; UC needs only SQ_PSN in 3; XRC_RECV needs SQ_PSN and TIMEOUT in 3
 *   UD:  1  PORT, PKEY_INDEX, QKEY    2  nothing    3  SQ_PSN
 *   RAW_PACKET:  1  PORT              2, 3  nothing
 * }</pre>
 *
 * <p>Connections that librdmacm makes go through these states by themselves, and those of iWARP do so in the kernel.
 *
 * <p>Before closing it, wait for posted work: go to ERR, then poll until every work request has completed, with
 * WR_FLUSH_ERR at the latest. Work that is outstanding when it closes never completes.
 *
 * <p>Source: ibv_create_qp(3), ibv_modify_qp(3)
 */
public final class QueuePair extends VerbsObject {
    private final ProtectionDomain domain;
    private final QueuePairOptions options;
    private final int number;
    private final SendQueue sendQueue;
    private final @Nullable ReceiveQueue receiveQueue;
    private final @Nullable Runnable foreignDestroyer;
    private final @Nullable WorkRequestBuilder builder;

    /** Whether it was asked for without sends and spreads receives: some devices then have no send queue at all. */
    private final boolean receivesAreSpread;

    private final boolean withoutSends;

    /** What {@link #attachMulticast} joined, for the message of a refused close; any thread. */
    private final Set<Gid> attachedGroups = ConcurrentHashMap.newKeySet();

    private QueuePair(
            long address,
            ProtectionDomain domain,
            QueuePairOptions granted,
            @Nullable QueuePairExtension extension,
            boolean withoutSends,
            @Nullable Runnable foreignDestroyer) {
        super(address, parents(domain, granted, extension));
        this.domain = domain;
        this.options = granted;
        this.foreignDestroyer = foreignDestroyer;
        Context context = domain.context();
        MemorySegment struct = Pointers.view(address, IbvQp.SIZE);
        AbiCheck.expect("ibv_qp.context", context.nativeAddress(), struct.get(CStruct.PTR, IbvQp.CONTEXT));
        AbiCheck.expect("ibv_qp.qp_type", granted.type().value(), struct.get(CStruct.ENUM, IbvQp.QP_TYPE));
        this.number = struct.get(CStruct.U32, IbvQp.QP_NUM);
        QueuePairCapabilities sizes = granted.capabilities();
        this.receivesAreSpread = extension != null && extension.receiveHash() != null;
        this.withoutSends = receivesAreSpread && withoutSends;
        SendQueue sends = new SendQueue(this, context.inlineOperation(IbvContextOps.POST_SEND), sizes);
        ReceiveQueue receives = null;
        try {
            if (granted.sharedReceives() == null && !receivesAreSpread) {
                receives = new ReceiveQueue(
                        this,
                        domain,
                        "ibv_post_recv",
                        context.inlineOperation(IbvContextOps.POST_RECV),
                        sizes.maxReceiveWrs(),
                        sizes.maxReceiveSges());
            }
            this.builder = extension == null || extension.sendOperations().isEmpty()
                    ? null
                    : new WorkRequestBuilder(this, LibIbverbs.qpToQpEx(address), extension, sizes);
        } catch (Throwable noMemory) {
            sends.free();
            if (receives != null) {
                receives.free();
            }
            throw noMemory;
        }
        this.sendQueue = sends;
        this.receiveQueue = receives;
    }

    private static VerbsObject[] parents(
            ProtectionDomain domain, QueuePairOptions options, @Nullable QueuePairExtension extension) {
        List<VerbsObject> parents = new ArrayList<>();
        parents.add(domain);
        parents.add(options.sendCompletions());
        if (options.receiveCompletions() != options.sendCompletions()) {
            parents.add(options.receiveCompletions());
        }
        SharedReceiveQueue shared = options.sharedReceives();
        if (shared != null) {
            parents.add(shared);
        }
        XrcDomain xrc = extension == null ? null : extension.xrcDomain();
        if (xrc != null) {
            parents.add(xrc);
        }
        ReceiveSpreading hash = extension == null ? null : extension.receiveHash();
        if (hash != null) {
            parents.add(hash.table());
        }
        return parents.toArray(VerbsObject[]::new);
    }

    /** Refuses queues of other devices. */
    private static void checkQueues(ProtectionDomain domain, QueuePairOptions options) {
        Context context = domain.context();
        context.checkOwns(options.sendCompletions(), options.sendCompletions().context(), domain);
        context.checkOwns(
                options.receiveCompletions(), options.receiveCompletions().context(), domain);
        SharedReceiveQueue shared = options.sharedReceives();
        if (shared != null) {
            context.checkOwns(shared, shared.domain().context(), domain);
        }
    }

    static QueuePair create(ProtectionDomain domain, QueuePairOptions options) {
        checkQueues(domain, options);
        VerbsObject[] parents = parents(domain, options, null);
        return make(parents, arena -> {
            MemorySegment attr = options.toNative(arena);
            long qp = Calls.createQueue(
                    domain.context(),
                    "ibv_create_qp",
                    options.type() + ", " + options.capabilities(),
                    errno -> LibIbverbs.createQp(errno, domain.nativeAddress(), attr.address()));
            return own(
                    qp,
                    made -> new QueuePair(made, domain, options.granted(attr), null, false, null),
                    LibIbverbs::destroyQp);
        });
    }

    static QueuePair createExtended(ProtectionDomain domain, QueuePairOptions options, QueuePairExtension extension) {
        Context context = domain.context();
        VerbsObject[] parents = parents(domain, options, extension);
        return make(parents, arena -> {
            MemorySegment function = context.extendedOperation("ibv_create_qp_ex", VerbsContext.CREATE_QP_EX);
            MemorySegment attr = toNative(arena, domain, options, extension);
            String arguments = options.type() + ", " + options.capabilities() + ", " + extension;
            long qp = Calls.createQueue(
                    context,
                    "ibv_create_qp_ex",
                    arguments,
                    errno -> VerbsOps.createQpEx(function, errno, context.nativeAddress(), attr.address()));
            return own(
                    qp,
                    made -> {
                        checkBuilder(made, extension, arguments);
                        return new QueuePair(
                                made,
                                domain,
                                options.granted(attr),
                                extension,
                                options.capabilities().maxSendWrs() == 0,
                                null);
                    },
                    LibIbverbs::destroyQp);
        });
    }

    /** Throws if a builder was asked for and the provider made a queue pair without one. */
    private static void checkBuilder(long ibvQp, QueuePairExtension extension, String arguments) {
        if (!extension.sendOperations().isEmpty() && LibIbverbs.qpToQpEx(ibvQp) == 0) {
            throw Failures.failure("ibv_qp_to_qp_ex", arguments, Errno.EOPNOTSUPP);
        }
    }

    /**
     * The C struct of an extended queue pair, for bindings of libraries that create such, as librdmacm's {@code
     * rdma_create_qp_ex}.
     *
     * @param arena owns the struct
     * @param domain where it will be created
     * @param options what it is created with
     * @param extension the additional options
     * @return an {@code ibv_qp_init_attr_ex}; C writes what it granted back into it
     * @throws IllegalArgumentException options and extension do not go together
     */
    public static MemorySegment toNative(
            Arena arena, ProtectionDomain domain, QueuePairOptions options, QueuePairExtension extension) {
        checkQueues(domain, options);
        ReceiveSpreading hash = extension.receiveHash();
        if (hash != null) {
            checkSpreading(domain, options, extension, hash);
        }
        MemorySegment attr = arena.allocate(IbvQpInitAttrEx.LAYOUT);
        attr.copyFrom(options.toNative(arena)); // the extended struct begins as the plain one
        int mask = 0;
        XrcDomain xrc = extension.xrcDomain();
        if (options.type() == QueuePairType.XRC_RECV) {
            if (xrc == null) {
                throw new IllegalArgumentException("an XRC_RECV queue pair needs an XRC domain");
            }
            domain.context().checkOwns(xrc, xrc.context(), domain);
            mask |= WITH_XRC_DOMAIN;
            attr.set(CStruct.PTR, IbvQpInitAttrEx.XRCD, xrc.nativeAddress());
            // The shared receive queue that a message names has the completion queue.
            attr.set(CStruct.PTR, IbvQpInitAttr.SEND_CQ, 0);
            without(attr, IbvQpCap.MAX_SEND_WR, IbvQpCap.MAX_SEND_SGE, IbvQpCap.MAX_INLINE_DATA);
            attr.set(CStruct.PTR, IbvQpInitAttr.RECV_CQ, 0);
            without(attr, IbvQpCap.MAX_RECV_WR, IbvQpCap.MAX_RECV_SGE);
        } else {
            mask |= WITH_DOMAIN;
            attr.set(CStruct.PTR, IbvQpInitAttrEx.PD, domain.nativeAddress());
            if (options.type() == QueuePairType.XRC_SEND) {
                attr.set(CStruct.PTR, IbvQpInitAttr.RECV_CQ, 0);
                without(attr, IbvQpCap.MAX_RECV_WR, IbvQpCap.MAX_RECV_SGE);
            }
        }
        if (!extension.createFlags().isEmpty()) {
            mask |= WITH_CREATE_FLAGS;
            attr.set(CStruct.U32, IbvQpInitAttrEx.CREATE_FLAGS, NativeConstant.mask(extension.createFlags()));
            attr.set(CStruct.U32, IbvQpInitAttrEx.SOURCE_QPN, extension.sourceNumber());
        }
        if (extension.maxTsoHeaderBytes() > 0) {
            mask |= WITH_TSO_HEADER;
            attr.set(CStruct.U16, IbvQpInitAttrEx.MAX_TSO_HEADER, (short) extension.maxTsoHeaderBytes());
        }
        if (!extension.sendOperations().isEmpty()) {
            mask |= WITH_SEND_OPERATIONS;
            attr.set(CStruct.U64, IbvQpInitAttrEx.SEND_OPS_FLAGS, NativeConstant.mask(extension.sendOperations()));
        }
        if (hash != null) {
            mask |= WITH_INDIRECTION_TABLE | WITH_RECEIVE_HASH;
            hash.write(arena, attr);
            attr.set(CStruct.PTR, IbvQpInitAttrEx.RECV_CQ, 0);
            if (options.capabilities().maxSendWrs() == 0) {
                attr.set(CStruct.PTR, IbvQpInitAttrEx.SEND_CQ, 0);
            }
        }
        attr.set(CStruct.U32, IbvQpInitAttrEx.COMP_MASK, mask);
        return attr;
    }

    /** Refuses what does not go with receives that come from receive work queues. */
    private static void checkSpreading(
            ProtectionDomain domain, QueuePairOptions options, QueuePairExtension extension, ReceiveSpreading hash) {
        QueuePairCapabilities sizes = options.capabilities();
        domain.context().checkOwns(hash.table(), hash.table().context(), domain);
        if (options.sharedReceives() != null || sizes.maxReceiveWrs() > 0 || sizes.maxReceiveSges() > 0) {
            throw new IllegalArgumentException("a queue pair that spreads what it receives has no receives of its own:"
                    + " set maxReceiveWrs and maxReceiveSges to 0, without shared receives");
        }
        if (sizes.maxSendWrs() == 0 && !extension.sendOperations().isEmpty()) {
            throw new IllegalArgumentException(
                    "send operations " + extension.sendOperations() + " need maxSendWrs of 1 or more");
        }
    }

    /** {@code IBV_QP_INIT_ATTR_*}. */
    private static final int WITH_DOMAIN = 1;

    /**
     * A queue that an XRC queue pair does not have has no size either: for the size of one without a completion queue,
     * librdmacm makes a completion queue, which it gives back in rdma_destroy_qp only (cma.c, rdma_create_qp_ex).
     */
    private static void without(MemorySegment attr, long... sizes) {
        for (long size : sizes) {
            attr.set(CStruct.U32, IbvQpInitAttr.CAP + size, 0);
        }
    }

    private static final int WITH_XRC_DOMAIN = 1 << 1;
    private static final int WITH_CREATE_FLAGS = 1 << 2;
    private static final int WITH_TSO_HEADER = 1 << 3;
    private static final int WITH_INDIRECTION_TABLE = 1 << 4;
    private static final int WITH_RECEIVE_HASH = 1 << 5;
    private static final int WITH_SEND_OPERATIONS = 1 << 6;

    /**
     * Takes a queue pair that another library created, such as librdmacm's {@code rdma_create_qp}.
     *
     * @param domain the protection domain it was created on
     * @param ibvQp address of an {@code ibv_qp}; it stays valid until the destroyer is called
     * @param granted what it was created with, with the sizes that were granted
     * @param destroyer called once, when this is closed: destroys the queue pair, or throws and leaves it
     * @return the queue pair
     * @throws UnsupportedOperationException the library has an unknown ABI: the caller keeps the queue pair
     */
    public static QueuePair wrap(ProtectionDomain domain, long ibvQp, QueuePairOptions granted, Runnable destroyer) {
        return wrap(domain, ibvQp, granted, null, false, destroyer);
    }

    /**
     * Takes an extended queue pair that another library created, such as librdmacm's {@code rdma_create_qp_ex}.
     *
     * @param domain the protection domain it was created on
     * @param ibvQp address of an {@code ibv_qp}; it stays valid until the destroyer is called
     * @param asked what it was created with
     * @param granted the same with the sizes that were granted
     * @param extension what else it was created with
     * @param destroyer called once, when this is closed: destroys the queue pair, or throws and leaves it
     * @return the queue pair
     * @throws VerbsException a builder was asked for, and the provider made a queue pair without: the caller keeps it
     */
    public static QueuePair wrap(
            ProtectionDomain domain,
            long ibvQp,
            QueuePairOptions asked,
            QueuePairOptions granted,
            QueuePairExtension extension,
            Runnable destroyer) {
        checkBuilder(ibvQp, extension, extension.toString());
        return wrap(domain, ibvQp, granted, extension, asked.capabilities().maxSendWrs() == 0, destroyer);
    }

    private static QueuePair wrap(
            ProtectionDomain domain,
            long ibvQp,
            QueuePairOptions granted,
            @Nullable QueuePairExtension extension,
            boolean withoutSends,
            Runnable destroyer) {
        VerbsObject[] parents = parents(domain, granted, extension);
        return make(parents, arena -> {
            return own(
                    ibvQp,
                    foreign -> new QueuePair(foreign, domain, granted, extension, withoutSends, destroyer),
                    refused -> {});
        });
    }

    /**
     * The protection domain of its memory.
     *
     * @return the protection domain
     */
    public ProtectionDomain domain() {
        return domain;
    }

    /**
     * The options that it was created with.
     *
     * @return the options, with the sizes that the device granted
     */
    public QueuePairOptions options() {
        return options;
    }

    /**
     * Its number, which identifies it to the peer.
     *
     * @return 24 bits
     */
    public int number() {
        return number;
    }

    /**
     * The send queue of a queue pair: sends, writes, reads and atomics are posted here.
     *
     * @return its send queue
     * @throws IllegalStateException it is XRC_RECV, which has none, or spreads receives and was created without sends
     */
    public SendQueue sendQueue() {
        if (options.type() == QueuePairType.XRC_RECV) {
            throw new IllegalStateException(this + " is the receiving side of XRC: nothing can be posted to it");
        }
        if (withoutSends) {
            throw new IllegalStateException(this + " was created without sends: nothing can be posted to it");
        }
        return sendQueue;
    }

    /**
     * The receive queue.
     *
     * @return its receive queue
     * @throws IllegalStateException receives come from {@link QueuePairOptions#sharedReceives}, or it is of XRC, where
     *     they come from the shared receive queue that the sender names, or from receive work queues
     */
    public ReceiveQueue receiveQueue() {
        if (options.type() == QueuePairType.XRC_SEND || options.type() == QueuePairType.XRC_RECV) {
            throw new IllegalStateException(this + " has no receive queue: post to an XRC shared receive queue");
        }
        if (receivesAreSpread) {
            throw new IllegalStateException(
                    this + " spreads what it receives: post to the receive work queues of its table");
        }
        ReceiveQueue own = receiveQueue;
        if (own == null) {
            throw new IllegalStateException(this + " takes its receives from a shared receive queue: post them there");
        }
        return own;
    }

    /**
     * The state that the library last set. Errors and iWARP connections change it in the kernel, where {@link #query}
     * reads it.
     *
     * @return the state
     */
    public QueuePairState lastKnownState() {
        return whileOpen(arena -> QueuePairState.of(Pointers.readInt(nativeAddress() + IbvQp.STATE)));
    }

    /**
     * Changes attributes, including the state.
     *
     * @param attributes what to change
     * @throws IllegalArgumentException there is no such step, or attributes are missing or not allowed in it: the
     *     message names them
     * @throws VerbsException the device refused
     */
    public void modify(QueuePairAttributes attributes) {
        // The kernel moves iWARP queue pairs along with their connections, so what the library knows says little.
        if (domain.context().device().transportType() != TransportType.IWARP) {
            QueuePairState from = attributes.present().contains(QueuePairAttribute.CUR_STATE)
                    ? attributes.currentState()
                    : lastKnownState();
            QueuePairTransition.check(options.type(), from, attributes);
        }
        runWhileOpen(arena -> {
            Calls.check(
                    "ibv_modify_qp",
                    this + ", " + attributes,
                    LibIbverbs.modifyQp(
                            nativeAddress(), attributes.toNative(arena).address(), attributes.mask()));
        });
    }

    /**
     * Queries attributes.
     *
     * @param first an attribute
     * @param others more
     * @return these attributes, as far as the device knows them
     * @throws VerbsException the device refused
     */
    public QueuePairAttributes query(QueuePairAttribute first, QueuePairAttribute... others) {
        int mask = NativeConstant.mask(EnumSet.of(first, others));
        return whileOpen(arena -> {
            MemorySegment attr = arena.allocate(IbvQpAttr.LAYOUT);
            MemorySegment init = arena.allocate(IbvQpInitAttr.LAYOUT);
            Calls.check(
                    "ibv_query_qp",
                    toString(),
                    LibIbverbs.queryQp(nativeAddress(), attr.address(), mask, init.address()));
            return QueuePairAttributes.read(attr, mask);
        });
    }

    /**
     * Queries the state.
     *
     * @return the state, as the kernel has it
     * @throws VerbsException the device refused
     */
    public QueuePairState queryState() {
        return query(QueuePairAttribute.STATE).state();
    }

    /**
     * The builder that writes work requests one by one, directly into the device's queue.
     *
     * @return its builder
     * @throws IllegalStateException it was created without {@link QueuePairExtension#sendOperations()}
     */
    public WorkRequestBuilder builder() {
        WorkRequestBuilder own = builder;
        if (own == null) {
            throw new IllegalStateException(this + " was created without send operations: see QueuePairExtension");
        }
        return own;
    }

    /**
     * Queries the options that the adapters may agree on.
     *
     * @return what this side offers, or what was agreed on once connected
     * @throws VerbsException the provider does not support it
     */
    public EnhancedConnection queryEnhancedConnection() {
        return whileOpen(arena -> {
            MemorySegment ece = arena.allocate(IbvEce.LAYOUT);
            Calls.check("ibv_query_ece", toString(), LibIbverbs.queryEce(nativeAddress(), ece.address()));
            return new EnhancedConnection(ece.get(CStruct.U32, IbvEce.VENDOR_ID), ece.get(CStruct.U32, IbvEce.OPTIONS));
        });
    }

    /**
     * Sets the options that the adapters shall agree on, before the step to RTR.
     *
     * @param enhanced what the peer offered
     * @throws VerbsException the provider does not support it
     */
    public void setEnhancedConnection(EnhancedConnection enhanced) {
        runWhileOpen(arena -> {
            MemorySegment ece = arena.allocate(IbvEce.LAYOUT);
            ece.set(CStruct.U32, IbvEce.VENDOR_ID, enhanced.vendorId());
            ece.set(CStruct.U32, IbvEce.OPTIONS, enhanced.options());
            Calls.check("ibv_set_ece", enhanced.toString(), LibIbverbs.setEce(nativeAddress(), ece.address()));
        });
    }

    /**
     * Limits how fast it sends; raw packets only, in RTS.
     *
     * @param limit the limit
     * @throws VerbsException the device refused, or does not support it
     */
    public void modifyRateLimit(RateLimit limit) {
        runWhileOpen(arena -> {
            MemorySegment function =
                    domain.context().extendedOperation("ibv_modify_qp_rate_limit", VerbsContext.MODIFY_QP_RATE_LIMIT);
            MemorySegment attr = arena.allocate(IbvQpRateLimitAttr.LAYOUT);
            attr.set(CStruct.U32, IbvQpRateLimitAttr.RATE_LIMIT, limit.kilobitsPerSecond());
            attr.set(CStruct.U32, IbvQpRateLimitAttr.MAX_BURST_SZ, limit.maxBurstBytes());
            attr.set(CStruct.U16, IbvQpRateLimitAttr.TYPICAL_PKT_SZ, (short) limit.typicalPacketBytes());
            Calls.check(
                    "ibv_modify_qp_rate_limit",
                    limit.toString(),
                    VerbsOps.modifyQpRateLimit(function, nativeAddress(), attr.address()));
        });
    }

    /**
     * Whether the bytes of an operation appear in memory in their order, so that the last one can be polled for.
     *
     * @param opcode the operation
     * @return false if not, or if the device does not report it
     */
    public boolean isDataInOrder(WorkRequestOpcode opcode) {
        return whileOpen(arena -> LibIbverbs.queryQpDataInOrder(nativeAddress(), opcode.value(), 0) == 1);
    }

    /**
     * Joins a multicast group; datagram queue pairs only. Packets arrive once the network knows of the membership,
     * which librdmacm's rdma_join_multicast announces. Before it is closed, the queue pair has to be detached.
     *
     * @param group the group's GID
     * @param lid the group's LID, 0 on RoCE
     * @throws VerbsException the device refused
     */
    public void attachMulticast(Gid group, int lid) {
        runWhileOpen(arena -> {
            MemorySegment gid = arena.allocate(Gid.BYTES, Long.BYTES);
            Context.writeGid(gid, 0, group);
            Calls.check(
                    "ibv_attach_mcast",
                    this + ", " + group,
                    LibIbverbs.attachMcast(nativeAddress(), gid.address(), (short) lid));
            attachedGroups.add(group);
        });
    }

    /**
     * Leaves a multicast group.
     *
     * @param group the group's GID
     * @param lid as it was joined with
     * @throws VerbsException the device refused
     */
    public void detachMulticast(Gid group, int lid) {
        runWhileOpen(arena -> {
            MemorySegment gid = arena.allocate(Gid.BYTES, Long.BYTES);
            Context.writeGid(gid, 0, group);
            Calls.check(
                    "ibv_detach_mcast",
                    this + ", " + group,
                    LibIbverbs.detachMcast(nativeAddress(), gid.address(), (short) lid));
            attachedGroups.remove(group);
        });
    }

    @Override
    protected boolean raisesEvents() {
        return true;
    }

    @Override
    protected void destroy(long closing) {
        if (foreignDestroyer != null) {
            foreignDestroyer.run();
        } else {
            Calls.check(
                    "ibv_destroy_qp",
                    this + (attachedGroups.isEmpty() ? "" : ", attached to " + attachedGroups),
                    LibIbverbs.destroyQp(closing));
        }
    }

    @Override
    protected void freeMemory() {
        sendQueue.free();
        if (builder != null) {
            builder.free();
        }
        if (receiveQueue != null) {
            receiveQueue.free();
        }
    }

    @Override
    public String toString() {
        return options.type() + " QueuePair " + number + " of "
                + domain.context().device().name();
    }
}
