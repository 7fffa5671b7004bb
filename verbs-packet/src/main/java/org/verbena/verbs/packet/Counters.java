package org.verbena.verbs.packet;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.Context;
import org.verbena.verbs.PacketObject;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.internal.Seam;
import org.verbena.verbs.packet.ffm.IbvCounterAttachAttr;
import org.verbena.verbs.packet.ffm.IbvCounters;
import org.verbena.verbs.packet.ffm.IbvCountersInitAttr;
import org.verbena.verbs.packet.ffm.PacketOps;

/**
 * Counters of the device for flows. Any thread.
 *
 * <pre>{@code
 * counters.attach(CounterKind.PACKETS, 0);
 * counters.attach(CounterKind.BYTES, 1);
 * Flow flow = Flow.create(queuePair, FlowRule.steering(1, match, FlowEffect.count(counters)));
 * long packets = counters.read(false)[0];
 * }</pre>
 *
 * <p>Source: ibv_create_counters(3), ibv_attach_counters_point_flow(3), ibv_read_counters(3)
 */
public final class Counters extends PacketObject {
    /** Each reading has room for every index up to the highest one in use; devices have a handful. */
    public static final int MAX_INDEX = 255;

    /** {@code IBV_READ_COUNTERS_ATTR_PREFER_CACHED}. */
    static final int PREFER_CACHED = 1;

    private final Context context;
    private final MemorySegment destroyFunction;

    /** One more than the highest index in use; any thread. */
    private final AtomicInteger values = new AtomicInteger();

    private Counters(long address, Context context, MemorySegment destroyFunction) {
        super(Seam.PACKET, address, context);
        this.context = context;
        this.destroyFunction = destroyFunction;
        expect("ibv_counters.context", context.nativeAddress(), Pointers.readLong(address + IbvCounters.CONTEXT));
    }

    /**
     * Creates counters for flows.
     *
     * @param context of the device
     * @return the counters, which count nothing yet; the caller closes them
     * @throws VerbsException the device has none
     */
    public static Counters create(Context context) {
        return make(context, arena -> {
            MemorySegment function = operation(context, "ibv_create_counters", VerbsContext.CREATE_COUNTERS);
            MemorySegment destroy = operation(context, "ibv_destroy_counters", VerbsContext.DESTROY_COUNTERS);
            MemorySegment attr = arena.allocate(IbvCountersInitAttr.LAYOUT);
            long counters = create(
                    "ibv_create_counters",
                    context.device().name(),
                    errno -> PacketOps.createCounters(function, errno, context.nativeAddress(), attr.address()));
            return own(
                    counters,
                    made -> new Counters(made, context, destroy),
                    refused -> PacketOps.destroyCounters(destroy, refused));
        });
    }

    /**
     * Selects what an index counts, for all flows that will use these counters in {@link FlowEffect#count}. Call it
     * before the first of them is created.
     *
     * @param kind what it counts
     * @param index where {@link #read} returns it, 0 to {@link #MAX_INDEX}; several kinds at one index are added up
     * @throws VerbsException the device does not count that (EOPNOTSUPP), or a flow names these counters already
     *     (EBUSY)
     */
    public void attach(CounterKind kind, int index) {
        attach(kind, index, null);
    }

    /**
     * Selects what an index counts, for an existing flow.
     *
     * @param kind what it counts
     * @param index where {@link #read} returns it, 0 to {@link #MAX_INDEX}
     * @param flow whose packets; it has to be closed before these counters
     * @throws VerbsException the device does not count that, or only for flows yet to be created (EOPNOTSUPP)
     */
    public void attachTo(Flow flow, CounterKind kind, int index) {
        checkOwns(context, flow, flow.context(), this);
        runWhileOpen(arena -> flow.attach(this, () -> attach(kind, index, flow)));
    }

    private void attach(CounterKind kind, int index, @Nullable Flow flow) {
        Ranges.check("index", index, 0, MAX_INDEX);
        runWhileOpen(arena -> {
            MemorySegment function =
                    operation(context, "ibv_attach_counters_point_flow", VerbsContext.ATTACH_COUNTERS_POINT_FLOW);
            MemorySegment attr = arena.allocate(IbvCounterAttachAttr.LAYOUT);
            attr.set(CStruct.ENUM, IbvCounterAttachAttr.COUNTER_DESC, kind.value());
            attr.set(CStruct.U32, IbvCounterAttachAttr.INDEX, index);
            check(
                    "ibv_attach_counters_point_flow",
                    kind + ", index=" + index + (flow == null ? "" : ", " + flow),
                    PacketOps.attachCountersPointFlow(
                            function, nativeAddress(), attr.address(), flow == null ? 0 : flow.nativeAddress()));
            values.accumulateAndGet(index + 1, Math::max);
        });
    }

    /**
     * Reads the counters.
     *
     * @param preferCached whether slightly outdated numbers suffice, which saves an access to the device
     * @return one for each index up to the highest that counts; they only grow
     * @throws IllegalStateException nothing has been attached
     * @throws VerbsException no flow names these counters yet, or the device refused
     */
    public long[] read(boolean preferCached) {
        int count = values.get();
        if (count == 0) {
            throw new IllegalStateException(this + " count nothing: attach a kind first");
        }
        return whileOpen(arena -> {
            MemorySegment function = operation(context, "ibv_read_counters", VerbsContext.READ_COUNTERS);
            MemorySegment numbers = arena.allocate(CStruct.U64, count);
            check(
                    "ibv_read_counters",
                    toString(),
                    PacketOps.readCounters(
                            function, nativeAddress(), numbers.address(), count, preferCached ? PREFER_CACHED : 0));
            return numbers.toArray(CStruct.U64);
        });
    }

    @Override
    protected void destroy(long closing) {
        check("ibv_destroy_counters", toString(), PacketOps.destroyCounters(destroyFunction, closing));
    }

    @Override
    public String toString() {
        return "Counters of " + context.device().name();
    }
}
