package org.verbena.verbs;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.verbena.verbs.ffm.IbvFlow;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.ffm.VerbsOps;

/**
 * An active {@link FlowRule}. Closing it deactivates the rule; its queue pair, counters and actions must stay open at
 * least as long.
 *
 * <p>Source: ibv_create_flow(3)
 */
public final class Flow extends VerbsObject {
    private final Context context;
    private final FlowRule rule;
    private final MemorySegment destroyFunction;

    private Flow(long address, Context context, FlowRule rule, MemorySegment destroyFunction, VerbsObject[] parents) {
        super(address, parents);
        this.context = context;
        this.rule = rule;
        this.destroyFunction = destroyFunction;
        AbiCheck.expect("ibv_flow.context", context.nativeAddress(), Pointers.readLong(address + IbvFlow.CONTEXT));
    }

    static Flow create(QueuePair queuePair, FlowRule rule) {
        Context context = queuePair.domain().context();
        List<VerbsObject> lies = new ArrayList<>();
        lies.add(queuePair);
        for (VerbsObject object : rule.needs()) {
            Context its = object instanceof FlowAction action ? action.context() : ((Counters) object).context();
            context.checkOwns(object, its, queuePair);
            lies.add(object);
        }
        VerbsObject[] parents = lies.toArray(VerbsObject[]::new);
        return make(parents, arena -> {
            MemorySegment function = context.extendedOperation("ibv_create_flow", VerbsContext.IBV_CREATE_FLOW);
            MemorySegment destroy = context.extendedOperation("ibv_destroy_flow", VerbsContext.IBV_DESTROY_FLOW);
            MemorySegment attr = rule.toNative(arena);
            long flow = Calls.create(
                    "ibv_create_flow",
                    queuePair + ", " + rule,
                    errno -> VerbsOps.createFlow(function, errno, queuePair.nativeAddress(), attr.address()));
            return own(
                    flow,
                    made -> new Flow(made, context, rule, destroy, parents),
                    refused -> VerbsOps.destroyFlow(destroy, refused));
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
     * The context that it belongs to.
     *
     * @return the context
     */
    Context context() {
        return context;
    }

    @Override
    void destroy(long closing) {
        Calls.check("ibv_destroy_flow", toString(), VerbsOps.destroyFlow(destroyFunction, closing));
    }

    @Override
    public String toString() {
        return rule.type() + " Flow of " + context.device().name();
    }
}
