package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Errno;
import org.verbena.verbs.ffm.IbvContextOps;
import org.verbena.verbs.ffm.IbvCq;
import org.verbena.verbs.ffm.IbvCqInitAttrEx;
import org.verbena.verbs.ffm.IbvModerateCq;
import org.verbena.verbs.ffm.IbvModifyCqAttr;
import org.verbena.verbs.ffm.LibIbverbs;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.ffm.VerbsOps;
import org.verbena.verbs.queue.CompletionQueueFlag;
import org.verbena.verbs.work.CompletionField;

/**
 * Receives the completions of work requests. One thread at a time polls, arms and closes it.
 *
 * <p>A queue that overflows breaks, with all its queue pairs ({@link AsyncEventType#CQ_ERR}): give it an entry for
 * every work request that can be outstanding on them.
 *
 * <p>Source: ibv_create_cq(3), ibv_poll_cq(3), ibv_req_notify_cq(3)
 */
public final class CompletionQueue extends VerbsObject {
    /** {@code IBV_CQ_INIT_ATTR_MASK_FLAGS}. */
    private static final int MASK_FLAGS = 1;

    /**
     * After how many events they are acknowledged. Acknowledging takes a mutex, so it is done rarely; C counts in 32
     * bits, so it could be far rarer.
     */
    static final int EVENTS_PER_ACKNOWLEDGEMENT = 64;

    private final Context context;
    private final @Nullable CompletionChannel channel;
    private final int channelNumber;
    private final MemorySegment pollFunction;
    private final MemorySegment notifyFunction;

    /** Whether polling stays in user space: see {@link org.verbena.verbs.device.DriverFamily#pollsInUserSpace}. */
    private final boolean pollsInUserSpace;

    private final @Nullable CompletionReader reader;

    /** Events taken and not acknowledged. Written by the thread that takes events, read when closing. */
    private volatile int unacknowledgedEvents;

    private CompletionQueue(
            long address,
            Context context,
            @Nullable CompletionChannel channel,
            int channelNumber,
            @Nullable Set<CompletionField> fields) {
        super(address, channel == null ? new VerbsObject[] {context} : new VerbsObject[] {context, channel});
        this.context = context;
        this.channel = channel;
        this.channelNumber = channelNumber;
        this.pollFunction = context.inlineOperation(IbvContextOps.POLL_CQ);
        this.pollsInUserSpace = context.driverFamily().pollsInUserSpace();
        this.notifyFunction = context.inlineOperation(IbvContextOps.REQ_NOTIFY_CQ);
        AbiCheck.expect("ibv_cq.context", context.nativeAddress(), Pointers.readLong(address + IbvCq.CONTEXT));
        this.reader = fields == null ? null : new CompletionReader(this, fields);
    }

    static CompletionQueue create(Context context, int entries, @Nullable CompletionChannel channel, int vector) {
        return create(
                context,
                entries,
                channel,
                vector,
                null,
                "",
                (errno, number, device) -> LibIbverbs.createCq(
                        errno,
                        context.nativeAddress(),
                        entries,
                        number,
                        channel == null ? 0 : channel.nativeAddress(),
                        device));
    }

    static CompletionQueue createExtended(
            Context context,
            int entries,
            @Nullable CompletionChannel channel,
            int vector,
            Set<CompletionField> fields,
            Set<CompletionQueueFlag> flags) {
        String asked = ", " + fields + (flags.isEmpty() ? "" : ", " + flags);
        return create(context, entries, channel, vector, fields, asked, (errno, number, device) -> {
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment function = context.extendedOperation("ibv_create_cq_ex", VerbsContext.CREATE_CQ_EX);
                MemorySegment attr = arena.allocate(IbvCqInitAttrEx.LAYOUT);
                attr.set(CStruct.U32, IbvCqInitAttrEx.CQE, entries);
                attr.set(CStruct.PTR, IbvCqInitAttrEx.CQ_CONTEXT, number);
                attr.set(CStruct.PTR, IbvCqInitAttrEx.CHANNEL, channel == null ? 0 : channel.nativeAddress());
                attr.set(CStruct.U32, IbvCqInitAttrEx.COMP_VECTOR, device);
                attr.set(CStruct.U64, IbvCqInitAttrEx.WC_FLAGS, NativeConstant.mask(fields));
                if (!flags.isEmpty()) {
                    attr.set(CStruct.U32, IbvCqInitAttrEx.COMP_MASK, MASK_FLAGS);
                    attr.set(CStruct.U32, IbvCqInitAttrEx.FLAGS, NativeConstant.mask(flags));
                }
                return VerbsOps.createCqEx(function, errno, context.nativeAddress(), attr.address());
            }
        });
    }

    /** One of the two functions that create a queue. */
    private interface Creation {
        /**
         * Calls it.
         *
         * @param errno receives errno
         * @param number what events shall carry
         * @param vector one of the device's
         * @return address of the queue, or 0
         */
        long call(MemorySegment errno, int number, int vector);
    }

    private static CompletionQueue create(
            Context context,
            int entries,
            @Nullable CompletionChannel channel,
            int vector,
            @Nullable Set<CompletionField> fields,
            String asked,
            Creation creation) {
        if (entries < 1) {
            throw new IllegalArgumentException("entries " + entries + " is below 1");
        }
        if (vector < 0) {
            throw new IllegalArgumentException("completionVector " + vector + " is below 0");
        }
        VerbsObject[] parents = channel == null ? new VerbsObject[] {context} : new VerbsObject[] {context, channel};
        return make(parents, arena -> {
            int number = channel == null ? 0 : channel.reserve();
            try {
                long cq = Calls.createQueue(
                        context,
                        fields == null ? "ibv_create_cq" : "ibv_create_cq_ex",
                        "cqe=" + entries + ", comp_vector=" + vector + asked,
                        errno -> creation.call(errno, number, vector % Math.max(1, context.completionVectors())));
                CompletionQueue queue = own(
                        cq, made -> new CompletionQueue(made, context, channel, number, fields), LibIbverbs::destroyCq);
                if (channel != null) {
                    channel.assign(number, queue);
                }
                return queue;
            } catch (Throwable refused) {
                if (channel != null) {
                    channel.assign(number, null);
                }
                throw refused;
            }
        });
    }

    /**
     * The context that it belongs to.
     *
     * @return the context
     */
    public Context context() {
        return context;
    }

    /**
     * The channel that it reports events to.
     *
     * @return the channel, or null if it is only polled
     */
    public @Nullable CompletionChannel channel() {
        return channel;
    }

    /**
     * The number of completions that it can hold.
     *
     * @return at least the requested value
     */
    public int entries() {
        return whileOpen(arena -> Pointers.readInt(nativeAddress() + IbvCq.CQE));
    }

    /**
     * Takes completions off the queue. Does not allocate, and blocks only where the driver does: on some, a completion
     * with an error makes a system call.
     *
     * @param into where they go, replacing what was there
     * @return how many there were, 0 to its capacity; fewer than the capacity means that the queue was emptied
     * @throws VerbsException the queue is broken
     */
    public int poll(WorkCompletions into) {
        int count = call(into.nativeAddress(), into.capacity());
        into.setCount(Math.max(0, count));
        return checked(count);
    }

    /**
     * Takes completions off the queue, as C's headers have them, into memory of the caller's. Does not allocate, and
     * blocks as {@link #poll} does.
     *
     * @param completions address of {@code capacity} structs {@code ibv_wc}; a wrong one ends the JVM
     * @param capacity the most to take, 0 or more
     * @return how many there were; fewer than the capacity means that the queue was emptied
     * @throws VerbsException the queue is broken
     */
    public int pollNative(long completions, int capacity) {
        return checked(call(completions, Ranges.check("capacity", capacity, 0, Integer.MAX_VALUE)));
    }

    private int call(long completions, int capacity) {
        return pollsInUserSpace
                ? VerbsOps.pollCq(pollFunction, nativeAddress(), capacity, completions)
                : VerbsOps.pollCqInKernel(pollFunction, nativeAddress(), capacity, completions);
    }

    private int checked(int count) {
        if (count == -1
                || count == -2) { // no errnos, but what libmlx5, libmlx4 and libhns say of a queue they cannot read
            throw new VerbsException(
                    "ibv_poll_cq(" + this + ")",
                    Errno.EIO,
                    "the library reported an error of the queue (" + count + ")");
        }
        if (count < 0) {
            throw Failures.failure("ibv_poll_cq", toString(), -count);
        }
        return count;
    }

    /**
     * Arms the queue: requests one event on the channel for the next completion. Completions already in the queue cause
     * no event on some devices and one on others: poll again after arming, before waiting.
     *
     * @param solicitedOnly only for completions whose sender asked for it, and for errors
     * @throws VerbsException the device refused
     */
    public void requestNotify(boolean solicitedOnly) {
        int result = VerbsOps.reqNotifyCq(notifyFunction, nativeAddress(), solicitedOnly ? 1 : 0);
        if (result != 0) {
            throw Failures.failure("ibv_req_notify_cq", toString(), Math.abs(result));
        }
    }

    /**
     * Resizes it. Its entries are kept.
     *
     * @param entries how many completions it shall hold at least, 1 or more
     * @throws VerbsException the device refused, or cannot resize
     */
    public void resize(int entries) {
        if (entries < 1) {
            throw new IllegalArgumentException("entries " + entries + " is below 1");
        }
        runWhileOpen(
                arena -> Calls.check("ibv_resize_cq", "cqe=" + entries, LibIbverbs.resizeCq(nativeAddress(), entries)));
    }

    /**
     * Moderates events: one after a number of completions, or after a time.
     *
     * @param count completions, 0 to 65535
     * @param periodMicros microseconds, 0 to 65535
     * @throws VerbsException the device refused, or does not support it
     */
    public void moderate(int count, int periodMicros) {
        runWhileOpen(arena -> {
            MemorySegment function = context.extendedOperation("ibv_modify_cq", VerbsContext.MODIFY_CQ);
            MemorySegment attr = arena.allocate(IbvModifyCqAttr.LAYOUT);
            attr.set(CStruct.U32, IbvModifyCqAttr.ATTR_MASK, 1);
            attr.set(CStruct.U16, IbvModifyCqAttr.MODERATE + IbvModerateCq.CQ_COUNT, (short)
                    Ranges.check("count", count, 0, 0xffff));
            attr.set(CStruct.U16, IbvModifyCqAttr.MODERATE + IbvModerateCq.CQ_PERIOD, (short)
                    Ranges.check("periodMicros", periodMicros, 0, 0xffff));
            Calls.check(
                    "ibv_modify_cq",
                    "count=" + count + ", period=" + periodMicros,
                    VerbsOps.modifyCq(function, nativeAddress(), attr.address()));
        });
    }

    /**
     * The reader of an extended queue. Use either it or {@link #poll}, not both.
     *
     * @return its reader
     * @throws IllegalStateException it was not created by {@link Context#createExtendedCompletionQueue}
     */
    public CompletionReader reader() {
        CompletionReader own = reader;
        if (own == null) {
            throw new IllegalStateException(
                    "the " + this + " is not an extended queue: see Context.createExtendedCompletionQueue");
        }
        return own;
    }

    /** Counts an event that the channel has taken, and acknowledges a batch. */
    void onEvent() {
        int events = unacknowledgedEvents + 1; // one thread takes events
        unacknowledgedEvents = events;
        if (events == EVENTS_PER_ACKNOWLEDGEMENT) {
            acknowledge(nativeAddress());
        }
    }

    private void acknowledge(long cq) {
        int events = unacknowledgedEvents;
        if (events > 0) {
            unacknowledgedEvents = 0;
            LibIbverbs.ackCqEvents(cq, events);
        }
    }

    @Override
    protected boolean raisesEvents() {
        return true;
    }

    @Override
    protected void destroy(long closing) {
        acknowledge(closing); // ibv_destroy_cq waits for them for ever
        Calls.check("ibv_destroy_cq", toString(), LibIbverbs.destroyCq(closing));
    }

    @Override
    protected void freeMemory() {
        if (channel != null) {
            channel.assign(channelNumber, null);
        }
        if (reader != null) {
            reader.free();
        }
    }

    @Override
    public String toString() {
        return "CompletionQueue of " + context.device().name()
                + (channel == null ? "" : " on descriptor " + channel.descriptorForMessages());
    }
}
