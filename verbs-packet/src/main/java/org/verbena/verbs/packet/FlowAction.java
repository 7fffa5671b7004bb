package org.verbena.verbs.packet;

import java.lang.foreign.MemorySegment;
import org.verbena.verbs.Context;
import org.verbena.verbs.PacketObject;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.internal.Seam;
import org.verbena.verbs.packet.ffm.IbvFlowAction;
import org.verbena.verbs.packet.ffm.PacketOps;

/**
 * A change that flows make to packets: IPsec's decryption or encryption. {@link FlowEffect#change} names it. Any
 * thread.
 *
 * <p>Source: ibv_flow_action_esp(3)
 */
public final class FlowAction extends PacketObject {
    private final Context context;
    private final MemorySegment destroyFunction;

    private FlowAction(long address, Context context, MemorySegment destroyFunction) {
        super(Seam.PACKET, address, context);
        this.context = context;
        this.destroyFunction = destroyFunction;
        expect("ibv_flow_action.context", context.nativeAddress(), Pointers.readLong(address + IbvFlowAction.CONTEXT));
    }

    /**
     * Creates an action that decrypts or encrypts the ESP packets of flows.
     *
     * @param context of the device
     * @param parameters how; association and key have to be there
     * @return the action; the caller closes it
     * @throws VerbsException the device cannot, or refused the key
     */
    public static FlowAction create(Context context, EspParameters parameters) {
        if (parameters.association() == null || parameters.key() == null) {
            throw new IllegalArgumentException("an ESP action needs an association and a key to begin with");
        }
        return make(context, arena -> {
            MemorySegment function =
                    operation(context, "ibv_create_flow_action_esp", VerbsContext.CREATE_FLOW_ACTION_ESP);
            MemorySegment destroy = operation(context, "ibv_destroy_flow_action", VerbsContext.DESTROY_FLOW_ACTION);
            long action = parameters.apply(
                    arena,
                    attr -> create(
                            "ibv_create_flow_action_esp",
                            parameters.toString(),
                            errno -> PacketOps.createFlowActionEsp(function, errno, context.nativeAddress(), attr)));
            return own(
                    action,
                    made -> new FlowAction(made, context, destroy),
                    refused -> PacketOps.destroyFlowAction(destroy, refused));
        });
    }

    /**
     * Changes it for all flows that use it, at once.
     *
     * @param parameters what changes; what is not given stays
     * @throws VerbsException the device refused
     */
    public void modify(EspParameters parameters) {
        runWhileOpen(arena -> {
            MemorySegment function =
                    operation(context, "ibv_modify_flow_action_esp", VerbsContext.MODIFY_FLOW_ACTION_ESP);
            check("ibv_modify_flow_action_esp", parameters.toString(), (int)
                    parameters.apply(arena, attr -> PacketOps.modifyFlowActionEsp(function, nativeAddress(), attr)));
        });
    }

    @Override
    protected void destroy(long closing) {
        check("ibv_destroy_flow_action", toString(), PacketOps.destroyFlowAction(destroyFunction, closing));
    }

    @Override
    public String toString() {
        return "ESP FlowAction of " + context.device().name();
    }
}
