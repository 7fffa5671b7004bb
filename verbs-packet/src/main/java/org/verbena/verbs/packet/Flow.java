package org.verbena.verbs.packet;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.verbena.verbs.Context;
import org.verbena.verbs.PacketObject;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.VerbsObject;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.internal.Seam;
import org.verbena.verbs.packet.ffm.IbvFlow;
import org.verbena.verbs.packet.ffm.PacketOps;

/**
 * An active {@link FlowRule}. Closing it deactivates the rule; its queue pair, counters and actions must stay open at
 * least as long.
 *
 * <p>Source: ibv_create_flow(3)
 */
public final class Flow extends PacketObject {
    private final Context context;
    private final FlowRule rule;
    private final MemorySegment destroyFunction;

    private Flow(long address, Context context, FlowRule rule, MemorySegment destroyFunction, VerbsObject[] parents) {
        super(Seam.PACKET, address, parents);
        this.context = context;
        this.rule = rule;
        this.destroyFunction = destroyFunction;
        expect("ibv_flow.context", context.nativeAddress(), Pointers.readLong(address + IbvFlow.CONTEXT));
    }

    /**
     * Steers packets with certain headers to a queue pair, which is of RAW_PACKET or UD.
     *
     * @param queuePair receives the packets
     * @param rule which packets, and what else is done with them
     * @return the rule in force; the caller closes it before the queue pair
     * @throws IllegalArgumentException the rule names counters or actions of another context
     * @throws VerbsException the device cannot steer packets, does not accept the rule, or CAP_NET_RAW is missing
     *     (EPERM)
     */
    public static Flow create(QueuePair queuePair, FlowRule rule) {
        Context context = queuePair.domain().context();
        List<VerbsObject> lies = new ArrayList<>();
        lies.add(queuePair);
        for (PacketObject object : rule.needs()) {
            checkOwns(context, object, object.context(), queuePair);
            lies.add(object);
        }
        VerbsObject[] parents = lies.toArray(VerbsObject[]::new);
        return make(parents, arena -> {
            MemorySegment function = operation(context, "ibv_create_flow", VerbsContext.IBV_CREATE_FLOW);
            MemorySegment destroy = operation(context, "ibv_destroy_flow", VerbsContext.IBV_DESTROY_FLOW);
            MemorySegment attr = rule.toNative(arena);
            long flow = create(
                    "ibv_create_flow",
                    queuePair + ", " + rule,
                    errno -> PacketOps.createFlow(function, errno, queuePair.nativeAddress(), attr.address()));
            return own(
                    flow,
                    made -> new Flow(made, context, rule, destroy, parents),
                    refused -> PacketOps.destroyFlow(destroy, refused));
        });
    }

    /**
     * The rule.
     *
     * @return the rule
     */
    public FlowRule rule() {
        return rule;
    }

    /**
     * Attaches counters, which cannot be closed before this flow from then on.
     *
     * @param counters to attach
     * @param attaching calls C
     */
    void attach(Counters counters, Runnable attaching) {
        runWhileOpen(arena -> {
            attaching.run();
            addParent(counters);
        });
    }

    @Override
    protected void destroy(long closing) {
        check("ibv_destroy_flow", toString(), PacketOps.destroyFlow(destroyFunction, closing));
    }

    @Override
    public String toString() {
        return rule.type() + " Flow of " + context.device().name();
    }
}
