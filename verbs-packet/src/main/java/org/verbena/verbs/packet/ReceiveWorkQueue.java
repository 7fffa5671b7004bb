package org.verbena.verbs.packet;

import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.PacketObject;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.ReceiveQueue;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.VerbsObject;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.Posix;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.internal.Seam;
import org.verbena.verbs.packet.ffm.IbvWq;
import org.verbena.verbs.packet.ffm.IbvWqAttr;
import org.verbena.verbs.packet.ffm.IbvWqInitAttr;
import org.verbena.verbs.packet.ffm.PacketOps;

/**
 * Receives without a queue pair of their own: an {@link IndirectionTable} spreads packets over several of these.
 * Posting belongs to one thread at a time, and so does closing it.
 *
 * <pre>{@code
 *   RESET --> RDY --> ERR --> RESET      with moveTo; it begins in RESET
 * }</pre>
 *
 * <p>Source: ibv_create_wq(3), ibv_modify_wq(3)
 */
public final class ReceiveWorkQueue extends PacketObject {
    /** {@code IBV_WQ_INIT_ATTR_FLAGS}. */
    static final int WITH_FLAGS = 1;

    /** {@code IBV_WQ_ATTR_STATE}. */
    static final int STATE = 1;

    /** {@code IBV_WQ_ATTR_CURR_STATE}. */
    static final int CURRENT_STATE = 1 << 1;

    /** {@code IBV_WQ_ATTR_FLAGS}. */
    static final int FLAGS = 1 << 2;

    /** {@code IBV_WQT_RQ}. */
    static final int RECEIVE = 0;

    private final ProtectionDomain domain;
    private final MemorySegment destroyFunction;
    private final int number;
    private final int maxSges;
    private final ReceiveQueue queue;

    private ReceiveWorkQueue(
            long address,
            ProtectionDomain domain,
            MemorySegment postFunction,
            MemorySegment destroyFunction,
            int depthWrs,
            int maxSges,
            VerbsObject... parents) {
        super(Seam.PACKET, address, parents);
        this.domain = domain;
        this.destroyFunction = destroyFunction;
        this.number = Pointers.readInt(address + IbvWq.WQ_NUM);
        this.maxSges = maxSges;
        this.queue = newReceiveQueue(domain, postFunction, depthWrs, maxSges);
    }

    /**
     * Creates a queue of receives that packets are spread to.
     *
     * @param domain of their memory
     * @param depthWrs how many receives it holds, 1 or more
     * @param maxSges how many elements a receive may have, 1 or more
     * @param completions where receives complete
     * @param flags what it does to packets
     * @return the queue, in RESET; the caller closes it
     * @throws VerbsException the device has none, or refused
     */
    public static ReceiveWorkQueue create(
            ProtectionDomain domain, int depthWrs, int maxSges, CompletionQueue completions, Set<WorkQueueFlag> flags) {
        Ranges.check("depthWrs", depthWrs, 1, Integer.MAX_VALUE);
        Ranges.check("maxSges", maxSges, 1, Integer.MAX_VALUE);
        Context context = domain.context();
        checkOwns(context, completions, completions.context(), domain);
        VerbsObject[] parents = {domain, completions};
        return make(parents, arena -> {
            MemorySegment function = operation(context, "ibv_create_wq", VerbsContext.CREATE_WQ);
            MemorySegment destroy = operation(context, "ibv_destroy_wq", VerbsContext.DESTROY_WQ);
            MemorySegment attr = arena.allocate(IbvWqInitAttr.LAYOUT);
            attr.set(CStruct.ENUM, IbvWqInitAttr.WQ_TYPE, RECEIVE);
            attr.set(CStruct.U32, IbvWqInitAttr.MAX_WR, depthWrs);
            attr.set(CStruct.U32, IbvWqInitAttr.MAX_SGE, maxSges);
            attr.set(CStruct.PTR, IbvWqInitAttr.PD, domain.nativeAddress());
            attr.set(CStruct.PTR, IbvWqInitAttr.CQ, completions.nativeAddress());
            if (!flags.isEmpty()) {
                attr.set(CStruct.U32, IbvWqInitAttr.COMP_MASK, WITH_FLAGS);
                attr.set(CStruct.U32, IbvWqInitAttr.CREATE_FLAGS, NativeConstant.mask(flags));
            }
            long wq = create(
                    "ibv_create_wq",
                    "max_wr=" + depthWrs + ", max_sge=" + maxSges + ", " + flags,
                    errno -> PacketOps.createWq(function, errno, context.nativeAddress(), attr.address()));
            return own(
                    wq,
                    made -> new ReceiveWorkQueue(
                            made,
                            domain,
                            postFunction(made, context, completions),
                            destroy,
                            attr.get(CStruct.U32, IbvWqInitAttr.MAX_WR),
                            attr.get(CStruct.U32, IbvWqInitAttr.MAX_SGE),
                            parents),
                    refused -> PacketOps.destroyWq(destroy, refused));
        });
    }

    /** Does what remains of the header's inline function, and returns the function that posts. */
    private static MemorySegment postFunction(long wq, Context context, CompletionQueue completions) {
        MemorySegment struct = Pointers.view(wq, IbvWq.SIZE);
        expect("ibv_wq.context", context.nativeAddress(), struct.get(CStruct.PTR, IbvWq.CONTEXT));
        expect("ibv_wq.cq", completions.nativeAddress(), struct.get(CStruct.PTR, IbvWq.CQ));
        // Providers leave these to the header's inline, and acknowledging events uses them.
        struct.set(CStruct.PTR, IbvWq.WQ_CONTEXT, 0);
        struct.set(CStruct.U32, IbvWq.EVENTS_COMPLETED, 0);
        check("pthread_mutex_init", "ibv_wq.mutex", Posix.pthreadMutexInit(wq + IbvWq.MUTEX, 0));
        check("pthread_cond_init", "ibv_wq.cond", Posix.pthreadCondInit(wq + IbvWq.COND, 0));
        long post = struct.get(CStruct.PTR, IbvWq.POST_RECV);
        if (post == 0) {
            throw unsupported("ibv_post_wq_recv", context);
        }
        return Pointers.function(post);
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
     * Its number.
     *
     * @return 24 bits
     */
    public int number() {
        return number;
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
     * The receive queue.
     *
     * @return its queue
     */
    public ReceiveQueue receiveQueue() {
        return queue;
    }

    /**
     * The state that the library last put it into; errors change it on the device.
     *
     * @return the state
     */
    public WorkQueueState lastKnownState() {
        return whileOpen(arena -> WorkQueueState.of(Pointers.readInt(nativeAddress() + IbvWq.STATE)));
    }

    /**
     * Takes it to another state.
     *
     * @param state RESET, RDY or ERR
     * @throws VerbsException there is no such step, or the device refused
     */
    public void moveTo(WorkQueueState state) {
        moveTo(null, state);
    }

    /**
     * Takes it to another state if it is in a certain one.
     *
     * @param assumed the state that it is in; null for any
     * @param state RESET, RDY or ERR
     * @throws VerbsException it is in another state, there is no such step, or the device refused
     */
    public void moveTo(@Nullable WorkQueueState assumed, WorkQueueState state) {
        if (state == WorkQueueState.UNKNOWN || assumed == WorkQueueState.UNKNOWN) {
            throw new IllegalArgumentException("UNKNOWN is not a state of a transition");
        }
        modify(
                (assumed == null ? "" : assumed + " -> ") + state,
                assumed == null ? STATE : STATE | CURRENT_STATE,
                state,
                assumed == null ? WorkQueueState.RESET : assumed,
                Set.of(),
                Set.of());
    }

    /**
     * Changes what it does to packets.
     *
     * @param on what it shall do
     * @param off what it shall not do
     * @throws IllegalArgumentException nothing to change, or the same flag in both
     * @throws VerbsException the device refused
     */
    public void changeFlags(Set<WorkQueueFlag> on, Set<WorkQueueFlag> off) {
        if ((on.isEmpty() && off.isEmpty()) || !Collections.disjoint(on, off)) {
            throw new IllegalArgumentException(
                    "flags to switch on, " + on + ", and off, " + off + ": there must be one, and none may be in both");
        }
        modify("on=" + on + ", off=" + off, FLAGS, WorkQueueState.RESET, WorkQueueState.RESET, on, off);
    }

    private void modify(
            String what,
            int mask,
            WorkQueueState state,
            WorkQueueState assumed,
            Set<WorkQueueFlag> on,
            Set<WorkQueueFlag> off) {
        runWhileOpen(arena -> {
            MemorySegment function = operation(domain.context(), "ibv_modify_wq", VerbsContext.MODIFY_WQ);
            MemorySegment attr = arena.allocate(IbvWqAttr.LAYOUT);
            attr.set(CStruct.U32, IbvWqAttr.ATTR_MASK, mask);
            attr.set(CStruct.ENUM, IbvWqAttr.WQ_STATE, state.value());
            attr.set(CStruct.ENUM, IbvWqAttr.CURR_WQ_STATE, assumed.value());
            attr.set(CStruct.U32, IbvWqAttr.FLAGS, NativeConstant.mask(on));
            attr.set(CStruct.U32, IbvWqAttr.FLAGS_MASK, NativeConstant.mask(on) | NativeConstant.mask(off));
            check("ibv_modify_wq", this + ", " + what, PacketOps.modifyWq(function, nativeAddress(), attr.address()));
        });
    }

    @Override
    protected boolean raisesEvents() {
        return true;
    }

    @Override
    protected void destroy(long closing) {
        check("ibv_destroy_wq", toString(), PacketOps.destroyWq(destroyFunction, closing));
    }

    @Override
    protected void freeMemory() {
        free(queue);
    }

    @Override
    public String toString() {
        return "ReceiveWorkQueue " + number + " of " + domain.context().device().name();
    }
}
