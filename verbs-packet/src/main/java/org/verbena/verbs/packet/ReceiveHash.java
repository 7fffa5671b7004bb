package org.verbena.verbs.packet;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.EnumSet;
import java.util.Objects;
import java.util.Set;
import org.verbena.verbs.ReceiveSpreading;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvQpInitAttrEx;
import org.verbena.verbs.ffm.IbvRxHashConf;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.internal.Seam;

/**
 * How a queue pair spreads what it receives over the queues of an {@link IndirectionTable}: by Toeplitz' hash.
 *
 * <p>Source: ibv_create_qp_ex(3)
 */
public final class ReceiveHash extends ReceiveSpreading {
    /** {@code IBV_RX_HASH_FUNC_TOEPLITZ}. */
    static final int TOEPLITZ = 1;

    /** C counts its bytes in one. */
    private static final int MAX_KEY_BYTES = 0xff;

    private static final Set<ReceiveHashField> IPV4 = EnumSet.of(ReceiveHashField.SRC_IPV4, ReceiveHashField.DST_IPV4);
    private static final Set<ReceiveHashField> IPV6 = EnumSet.of(ReceiveHashField.SRC_IPV6, ReceiveHashField.DST_IPV6);
    private static final Set<ReceiveHashField> TCP =
            EnumSet.of(ReceiveHashField.SRC_PORT_TCP, ReceiveHashField.DST_PORT_TCP);
    private static final Set<ReceiveHashField> UDP =
            EnumSet.of(ReceiveHashField.SRC_PORT_UDP, ReceiveHashField.DST_PORT_UDP);

    private final IndirectionTable table;
    private final byte[] key;
    private final Set<ReceiveHashField> fields;

    /**
     * Spreads by fields of packets.
     *
     * @param table over what
     * @param key of the hash, 1 to 255 bytes; most devices take 40
     * @param fields of which version of IP, and of TCP or UDP; empty for all packets to the first entry
     * @throws IllegalArgumentException fields that do not go together
     */
    public ReceiveHash(IndirectionTable table, byte[] key, Set<ReceiveHashField> fields) {
        super(Seam.PACKET);
        this.table = Objects.requireNonNull(table);
        this.key = key.clone();
        this.fields = Set.copyOf(fields);
        Ranges.check("key length", key.length, 1, MAX_KEY_BYTES);
        if ((hasAny(IPV4) && hasAny(IPV6)) || (hasAny(TCP) && hasAny(UDP))) {
            throw new IllegalArgumentException("one queue pair hashes IPv4 or IPv6, and TCP or UDP: " + fields
                    + " is more; create a queue pair for each, on the same table");
        }
    }

    private boolean hasAny(Set<ReceiveHashField> some) {
        return fields.stream().anyMatch(some::contains);
    }

    /**
     * The table that it spreads packets over.
     *
     * @return the table
     */
    @Override
    public IndirectionTable table() {
        return table;
    }

    @Override
    protected void write(Arena arena, MemorySegment attr) {
        MemorySegment keyBytes = arena.allocateFrom(ValueLayout.JAVA_BYTE, key);
        attr.set(CStruct.PTR, IbvQpInitAttrEx.RWQ_IND_TBL, table.nativeAddress());
        long conf = IbvQpInitAttrEx.RX_HASH_CONF;
        attr.set(CStruct.U8, conf + IbvRxHashConf.RX_HASH_FUNCTION, (byte) TOEPLITZ);
        attr.set(CStruct.U8, conf + IbvRxHashConf.RX_HASH_KEY_LEN, (byte) key.length);
        attr.set(CStruct.PTR, conf + IbvRxHashConf.RX_HASH_KEY, keyBytes.address());
        attr.set(
                CStruct.U64,
                conf + IbvRxHashConf.RX_HASH_FIELDS_MASK,
                Integer.toUnsignedLong(NativeConstant.mask(fields)));
    }

    @Override
    public String toString() {
        return "hash of " + fields + " over " + table.entries() + " entries";
    }
}
