package org.verbena.verbs.packet;

import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import org.verbena.verbs.Context;
import org.verbena.verbs.PacketObject;
import org.verbena.verbs.VerbsException;
import org.verbena.verbs.VerbsObject;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Pointers;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.ffm.VerbsContext;
import org.verbena.verbs.internal.Seam;
import org.verbena.verbs.packet.ffm.IbvRwqIndTable;
import org.verbena.verbs.packet.ffm.IbvRwqIndTableInitAttr;
import org.verbena.verbs.packet.ffm.PacketOps;

/**
 * Selects the {@link ReceiveWorkQueue} that a packet goes to: its {@link ReceiveHash hash} picks an entry. The queues
 * stay open at least as long.
 *
 * <p>Source: ibv_create_rwq_ind_table(3)
 */
public final class IndirectionTable extends PacketObject {
    /** Devices have a few thousand; the device checks its own limit. */
    public static final int MAX_ENTRIES = 1 << 16;

    private final Context context;
    private final int entries;
    private final MemorySegment destroyFunction;

    private IndirectionTable(
            long address, Context context, int entries, MemorySegment destroyFunction, VerbsObject[] parents) {
        super(Seam.PACKET, address, parents);
        this.context = context;
        this.entries = entries;
        this.destroyFunction = destroyFunction;
        expect(
                "ibv_rwq_ind_table.context",
                context.nativeAddress(),
                Pointers.readLong(address + IbvRwqIndTable.CONTEXT));
    }

    /**
     * Creates a table for a queue pair that spreads its receives.
     *
     * @param context of the device
     * @param given its entries, a power of two; a queue may be in several
     * @return the table; the caller closes it before the queues
     * @throws IllegalArgumentException another number of entries, or queues of another context
     * @throws VerbsException the device has none, or not so large ones
     */
    public static IndirectionTable create(Context context, List<ReceiveWorkQueue> given) {
        List<ReceiveWorkQueue> queues = List.copyOf(given);
        int entries = queues.size();
        Ranges.check("number of entries", entries, 1, MAX_ENTRIES);
        if (Integer.bitCount(entries) != 1) {
            throw new IllegalArgumentException(
                    entries + " entries are not a power of two: name some of the queues more than once");
        }
        Set<VerbsObject> distinct = Collections.newSetFromMap(new IdentityHashMap<>());
        for (ReceiveWorkQueue queue : queues) {
            checkOwns(context, queue, queue.domain().context(), context);
            distinct.add(queue);
        }
        VerbsObject[] parents = distinct.toArray(VerbsObject[]::new);
        return make(parents, arena -> {
            MemorySegment function = operation(context, "ibv_create_rwq_ind_table", VerbsContext.CREATE_RWQ_IND_TABLE);
            MemorySegment destroy = operation(context, "ibv_destroy_rwq_ind_table", VerbsContext.DESTROY_RWQ_IND_TABLE);
            MemorySegment table = arena.allocate(CStruct.PTR, entries);
            for (int i = 0; i < entries; i++) {
                table.setAtIndex(CStruct.PTR, i, queues.get(i).nativeAddress());
            }
            MemorySegment attr = arena.allocate(IbvRwqIndTableInitAttr.LAYOUT);
            attr.set(CStruct.U32, IbvRwqIndTableInitAttr.LOG_IND_TBL_SIZE, Integer.numberOfTrailingZeros(entries));
            attr.set(CStruct.PTR, IbvRwqIndTableInitAttr.IND_TBL, table.address());
            long ibvTable = create(
                    "ibv_create_rwq_ind_table",
                    "entries=" + entries,
                    errno -> PacketOps.createRwqIndTable(function, errno, context.nativeAddress(), attr.address()));
            return own(
                    ibvTable,
                    made -> new IndirectionTable(made, context, entries, destroy, parents),
                    refused -> PacketOps.destroyRwqIndTable(destroy, refused));
        });
    }

    /**
     * The number of entries.
     *
     * @return a power of two
     */
    public int entries() {
        return entries;
    }

    @Override
    protected void destroy(long closing) {
        check("ibv_destroy_rwq_ind_table", toString(), PacketOps.destroyRwqIndTable(destroyFunction, closing));
    }

    @Override
    public String toString() {
        return "IndirectionTable of " + context.device().name();
    }
}
