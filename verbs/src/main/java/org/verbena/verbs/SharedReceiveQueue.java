package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvContextOps;
import org.verbena.verbs.ffm.IbvSrq;
import org.verbena.verbs.ffm.IbvSrqAttr;
import org.verbena.verbs.ffm.IbvSrqInitAttr;
import org.verbena.verbs.ffm.IbvSrqInitAttrEx;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.ffm.VerbsOps;
import org.verbena.verbs.internal.Seam;

/**
 * Receives that several queue pairs draw from. Posting belongs to one thread at a time.
 *
 * <p>Source: ibv_create_srq(3), ibv_create_srq_ex(3), ibv_modify_srq(3), ibv_query_srq(3)
 */
public final class SharedReceiveQueue extends VerbsObject {
    /** {@code IBV_SRQ_MAX_WR}. */
    private static final int MAX_WR = 1;

    /** {@code IBV_SRQ_LIMIT}. */
    private static final int LIMIT = 1 << 1;

    private final ProtectionDomain domain;
    private final int maxSges;
    private final ReceiveQueue queue;

    /** Posts work requests other than receives. */
    private final @Nullable PacketBatch more;

    private SharedReceiveQueue(
            long address, ProtectionDomain domain, int depthWrs, int maxSges, VerbsObject... parents) {
        this(address, domain, depthWrs, maxSges, queue -> null, parents);
    }

    private SharedReceiveQueue(
            long address,
            ProtectionDomain domain,
            int depthWrs,
            int maxSges,
            Function<SharedReceiveQueue, @Nullable PacketBatch> more,
            VerbsObject... parents) {
        super(address, parents);
        this.domain = domain;
        this.maxSges = maxSges;
        AbiCheck.expect("ibv_srq.pd", domain.nativeAddress(), Pointers.readLong(address + IbvSrq.PD));
        this.queue = new ReceiveQueue(
                this,
                domain,
                "ibv_post_srq_recv",
                domain.context().inlineOperation(IbvContextOps.POST_SRQ_RECV),
                depthWrs,
                maxSges);
        try {
            this.more = more.apply(this);
        } catch (Throwable noMemory) {
            queue.free();
            throw noMemory;
        }
    }

    static SharedReceiveQueue create(ProtectionDomain domain, int depthWrs, int maxSges) {
        Ranges.check("depthWrs", depthWrs, 1, Integer.MAX_VALUE);
        Ranges.check("maxSges", maxSges, 1, Integer.MAX_VALUE);
        return make(domain, arena -> {
            MemorySegment attr = arena.allocate(IbvSrqInitAttr.LAYOUT);
            attr.set(CStruct.U32, IbvSrqInitAttr.ATTR + IbvSrqAttr.MAX_WR, depthWrs);
            attr.set(CStruct.U32, IbvSrqInitAttr.ATTR + IbvSrqAttr.MAX_SGE, maxSges);
            long srq = Calls.createQueue(
                    domain.context(),
                    "ibv_create_srq",
                    "max_wr=" + depthWrs + ", max_sge=" + maxSges,
                    errno -> LibIbverbs.createSrq(errno, domain.nativeAddress(), attr.address()));
            return own(
                    srq,
                    made -> new SharedReceiveQueue(
                            made,
                            domain,
                            attr.get(CStruct.U32, IbvSrqInitAttr.ATTR + IbvSrqAttr.MAX_WR),
                            attr.get(CStruct.U32, IbvSrqInitAttr.ATTR + IbvSrqAttr.MAX_SGE),
                            domain),
                    LibIbverbs::destroySrq);
        });
    }

    static SharedReceiveQueue createXrc(
            ProtectionDomain domain, int depthWrs, int maxSges, XrcDomain xrc, CompletionQueue completions) {
        domain.context().checkOwns(xrc, xrc.context(), domain);
        return createExtended(
                domain,
                depthWrs,
                maxSges,
                completions,
                "XRC",
                attr -> {
                    attr.set(CStruct.U32, IbvSrqInitAttrEx.COMP_MASK, XRC_MASK);
                    attr.set(CStruct.ENUM, IbvSrqInitAttrEx.SRQ_TYPE, XRC_TYPE);
                    attr.set(CStruct.PTR, IbvSrqInitAttrEx.XRCD, xrc.nativeAddress());
                },
                (queue, attr) -> null,
                domain,
                xrc,
                completions);
    }

    /**
     * Creates a queue of a kind that the module {@code org.verbena.verbs.packet} has.
     *
     * @param seam shows that the module may do so
     * @param domain of the memory
     * @param depthWrs receives it holds at least, 1 or more
     * @param maxSges scatter/gather elements in one of them, 1 or more
     * @param completions where they complete
     * @param kind what it is, for the message of a refusal
     * @param writer writes what an {@code ibv_srq_init_attr_ex} has for this kind
     * @param more makes what posts other work requests, from the queue and the struct with the granted values
     * @return the queue; the caller closes it
     * @throws VerbsException the device does not have this kind, or refused
     */
    public static SharedReceiveQueue create(
            Seam seam,
            ProtectionDomain domain,
            int depthWrs,
            int maxSges,
            CompletionQueue completions,
            String kind,
            Consumer<MemorySegment> writer,
            BiFunction<SharedReceiveQueue, MemorySegment, PacketBatch> more) {
        Objects.requireNonNull(seam);
        return createExtended(domain, depthWrs, maxSges, completions, kind, writer, more, domain, completions);
    }

    private static SharedReceiveQueue createExtended(
            ProtectionDomain domain,
            int depthWrs,
            int maxSges,
            CompletionQueue completions,
            String kind,
            Consumer<MemorySegment> writer,
            BiFunction<SharedReceiveQueue, MemorySegment, @Nullable PacketBatch> more,
            VerbsObject... parents) {
        Ranges.check("depthWrs", depthWrs, 1, Integer.MAX_VALUE);
        Ranges.check("maxSges", maxSges, 1, Integer.MAX_VALUE);
        Context context = domain.context();
        context.checkOwns(completions, completions.context(), domain);
        return make(parents, arena -> {
            MemorySegment function = context.extendedOperation("ibv_create_srq_ex", VerbsContext.CREATE_SRQ_EX);
            MemorySegment attr = arena.allocate(IbvSrqInitAttrEx.LAYOUT);
            attr.set(CStruct.U32, IbvSrqInitAttrEx.ATTR + IbvSrqAttr.MAX_WR, depthWrs);
            attr.set(CStruct.U32, IbvSrqInitAttrEx.ATTR + IbvSrqAttr.MAX_SGE, maxSges);
            attr.set(CStruct.PTR, IbvSrqInitAttrEx.PD, domain.nativeAddress());
            attr.set(CStruct.PTR, IbvSrqInitAttrEx.CQ, completions.nativeAddress());
            writer.accept(attr);
            long srq = Calls.create(
                    "ibv_create_srq_ex",
                    kind + ", max_wr=" + depthWrs + ", max_sge=" + maxSges,
                    errno -> VerbsOps.createSrqEx(function, errno, context.nativeAddress(), attr.address()));
            return own(
                    srq,
                    made -> new SharedReceiveQueue(
                            made,
                            domain,
                            attr.get(CStruct.U32, IbvSrqInitAttrEx.ATTR + IbvSrqAttr.MAX_WR),
                            attr.get(CStruct.U32, IbvSrqInitAttrEx.ATTR + IbvSrqAttr.MAX_SGE),
                            queue -> more.apply(queue, attr),
                            parents),
                    LibIbverbs::destroySrq);
        });
    }

    /** {@code IBV_SRQ_INIT_ATTR_TYPE | _PD | _XRCD | _CQ}. */
    private static final int XRC_MASK = 1 | 1 << 1 | 1 << 2 | 1 << 3;

    /** {@code IBV_SRQT_XRC}. */
    private static final int XRC_TYPE = 1;

    /**
     * Its number, which identifies it to XRC senders.
     *
     * @return 24 bits
     * @throws VerbsException it is not for XRC, or the device has no XRC
     */
    public int number() {
        return whileOpen(arena -> {
            MemorySegment function = domain.context().extendedOperation("ibv_get_srq_num", VerbsContext.GET_SRQ_NUM);
            MemorySegment number = arena.allocate(CStruct.U32);
            Calls.check("ibv_get_srq_num", toString(), VerbsOps.getSrqNum(function, nativeAddress(), number.address()));
            return number.get(CStruct.U32, 0);
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
     * The receive queue.
     *
     * @return its queue
     */
    public ReceiveQueue receiveQueue() {
        return queue;
    }

    /**
     * The maximum number of scatter/gather elements of a receive.
     *
     * @return what the device granted
     */
    public int maxSges() {
        return maxSges;
    }

    /**
     * The number of receives that it can hold.
     *
     * @return what the device has now
     * @throws VerbsException the device refused
     */
    public int queryDepthWrs() {
        return query(IbvSrqAttr.MAX_WR);
    }

    /**
     * The number of receives below which {@link AsyncEventType#SRQ_LIMIT_REACHED} is raised.
     *
     * @return the limit, 0 if it is not armed
     * @throws VerbsException the device refused
     */
    public int queryLimitWrs() {
        return query(IbvSrqAttr.SRQ_LIMIT);
    }

    private int query(long field) {
        return whileOpen(arena -> {
            MemorySegment attr = arena.allocate(IbvSrqAttr.LAYOUT);
            Calls.check("ibv_query_srq", toString(), LibIbverbs.querySrq(nativeAddress(), attr.address()));
            return attr.get(CStruct.U32, field);
        });
    }

    /**
     * Requests one {@link AsyncEventType#SRQ_LIMIT_REACHED} event when fewer receives are left.
     *
     * @param limitWrs the limit, 0 to disarm
     * @throws VerbsException the device refused
     */
    public void armLimit(int limitWrs) {
        modify(IbvSrqAttr.SRQ_LIMIT, Ranges.check("limitWrs", limitWrs, 0, Integer.MAX_VALUE), LIMIT);
    }

    /**
     * Changes its depth.
     *
     * @param depthWrs how many receives it shall hold, 1 or more
     * @throws VerbsException the device refused, or cannot resize
     */
    public void resize(int depthWrs) {
        modify(IbvSrqAttr.MAX_WR, Ranges.check("depthWrs", depthWrs, 1, Integer.MAX_VALUE), MAX_WR);
    }

    private void modify(long field, int value, int mask) {
        runWhileOpen(arena -> {
            MemorySegment attr = arena.allocate(IbvSrqAttr.LAYOUT);
            attr.set(CStruct.U32, field, value);
            Calls.check(
                    "ibv_modify_srq",
                    (mask == LIMIT ? "srq_limit=" : "max_wr=") + value,
                    LibIbverbs.modifySrq(nativeAddress(), attr.address(), mask));
        });
    }

    @Override
    protected boolean raisesEvents() {
        return true;
    }

    @Override
    protected void destroy(long closing) {
        Calls.check("ibv_destroy_srq", toString(), LibIbverbs.destroySrq(closing));
    }

    @Override
    protected void freeMemory() {
        queue.free();
        if (more != null) {
            more.free();
        }
    }

    @Override
    public String toString() {
        return "SharedReceiveQueue of " + domain.context().device().name();
    }
}
