package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvContextOps;
import org.verbena.verbs.ffm.IbvQp;
import org.verbena.verbs.ffm.IbvQpAttr;
import org.verbena.verbs.ffm.IbvQpInitAttr;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;

/**
 * A send queue and a receive queue, in the states that {@link #modify} takes it through. Its queues belong to one thread at a time, and so
 * does closing it; {@code modify} and {@code query} may be called by any.
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
 *   UC and XRC_SEND lack the last two of 2; UC needs SQ_PSN alone in 3; XRC_RECV needs SQ_PSN and TIMEOUT in 3
 *   UD:  1  PORT, PKEY_INDEX, QKEY    2  nothing    3  SQ_PSN
 *   RAW_PACKET:  1  PORT              2, 3  nothing
 * }</pre>
 *
 * <p>Connections that librdmacm makes go through these states by themselves, and those of iWARP do so in the kernel.
 *
 * <p>Before it is closed, what was posted should be waited for: go to ERR, then poll until every work request has completed, with
 * WR_FLUSH_ERR at the latest. What is still out when it closes never completes.
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

    private QueuePair(
            long address, ProtectionDomain domain, QueuePairOptions granted, @Nullable Runnable foreignDestroyer) {
        super(address, parents(domain, granted));
        this.domain = domain;
        this.options = granted;
        this.foreignDestroyer = foreignDestroyer;
        Context context = domain.context();
        MemorySegment struct = Pointers.view(address, IbvQp.SIZE);
        AbiCheck.expect("ibv_qp.context", context.nativeAddress(), struct.get(CStruct.PTR, IbvQp.CONTEXT));
        AbiCheck.expect("ibv_qp.qp_type", granted.type().value(), struct.get(CStruct.ENUM, IbvQp.QP_TYPE));
        this.number = struct.get(CStruct.U32, IbvQp.QP_NUM);
        QueuePairCapabilities sizes = granted.capabilities();
        this.sendQueue = new SendQueue(this, context.inlineOperation(IbvContextOps.POST_SEND), sizes);
        this.receiveQueue = granted.sharedReceives() != null
                ? null
                : new ReceiveQueue(
                        this,
                        domain,
                        "ibv_post_recv",
                        context.inlineOperation(IbvContextOps.POST_RECV),
                        sizes.maxReceiveWrs(),
                        sizes.maxReceiveSges());
    }

    private static VerbsObject[] parents(ProtectionDomain domain, QueuePairOptions options) {
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
        return parents.toArray(VerbsObject[]::new);
    }

    static QueuePair create(ProtectionDomain domain, QueuePairOptions options) {
        VerbsObject[] parents = parents(domain, options);
        hold(parents);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment attr = options.toNative(arena);
            long qp = Calls.create(
                    "ibv_create_qp",
                    options.type() + ", " + options.capabilities(),
                    errno -> LibIbverbs.createQp(errno, domain.nativeAddress(), attr.address()));
            return new QueuePair(qp, domain, options.granted(attr), null);
        } finally {
            release(parents);
        }
    }

    /**
     * Takes a queue pair that another library created, such as librdmacm's {@code rdma_create_qp}.
     *
     * @param domain the protection domain it was created on
     * @param ibvQp address of an {@code ibv_qp}; it stays valid until the destroyer is called
     * @param granted what it was created with, with the sizes that were granted
     * @param destroyer called once, when this is closed: destroys the queue pair, or throws and leaves it
     * @return the queue pair
     */
    public static QueuePair wrap(ProtectionDomain domain, long ibvQp, QueuePairOptions granted, Runnable destroyer) {
        VerbsObject[] parents = parents(domain, granted);
        hold(parents);
        try {
            return new QueuePair(ibvQp, domain, granted, destroyer);
        } finally {
            release(parents);
        }
    }

    /**
     * Where its memory is registered.
     *
     * @return the protection domain
     */
    public ProtectionDomain domain() {
        return domain;
    }

    /**
     * What it was created with.
     *
     * @return the options, with the sizes that the device granted
     */
    public QueuePairOptions options() {
        return options;
    }

    /**
     * Its number, which the peer names it by.
     *
     * @return 24 bits
     */
    public int number() {
        return number;
    }

    /**
     * Where sends, writes, reads and atomics are posted.
     *
     * @return its send queue
     */
    public SendQueue sendQueue() {
        return sendQueue;
    }

    /**
     * Where receives are posted.
     *
     * @return its receive queue
     * @throws IllegalStateException receives come from {@link QueuePairOptions#sharedReceives}
     */
    public ReceiveQueue receiveQueue() {
        ReceiveQueue own = receiveQueue;
        if (own == null) {
            throw new IllegalStateException(this + " takes its receives from a shared receive queue: post them there");
        }
        return own;
    }

    /**
     * The state that the library last put it into. Errors, and iWARP connections, change it in the kernel: {@link #query} asks there.
     *
     * @return the state
     */
    public QueuePairState lastKnownState() {
        return QueuePairState.of(Pointers.readInt(nativeAddress() + IbvQp.STATE));
    }

    /**
     * Changes attributes, the state among them.
     *
     * @param attributes what to change
     * @throws IllegalArgumentException there is no such step, or attributes are missing or not allowed in it: the message names them
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
        try (Arena arena = Arena.ofConfined()) {
            Calls.check(
                    "ibv_modify_qp",
                    this + ", " + attributes,
                    LibIbverbs.modifyQp(
                            nativeAddress(), attributes.toNative(arena).address(), attributes.mask()));
        }
    }

    /**
     * Asks for attributes.
     *
     * @param first an attribute
     * @param others more
     * @return these attributes, as far as the device knows them
     * @throws VerbsException the device refused
     */
    public QueuePairAttributes query(QueuePairAttribute first, QueuePairAttribute... others) {
        int mask = first.value();
        for (QueuePairAttribute other : others) {
            mask |= other.value();
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment attr = arena.allocate(IbvQpAttr.LAYOUT);
            MemorySegment init = arena.allocate(IbvQpInitAttr.LAYOUT);
            Calls.check(
                    "ibv_query_qp",
                    toString(),
                    LibIbverbs.queryQp(nativeAddress(), attr.address(), mask, init.address()));
            return QueuePairAttributes.read(attr, mask);
        }
    }

    /**
     * Asks for the state.
     *
     * @return the state, as the kernel has it
     * @throws VerbsException the device refused
     */
    public QueuePairState queryState() {
        return query(QueuePairAttribute.STATE).state();
    }

    @Override
    void destroy(long closing) {
        if (foreignDestroyer != null) {
            foreignDestroyer.run();
        } else {
            Calls.check("ibv_destroy_qp", toString(), LibIbverbs.destroyQp(closing));
        }
        sendQueue.free();
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
