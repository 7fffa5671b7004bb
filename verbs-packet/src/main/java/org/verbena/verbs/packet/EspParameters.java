package org.verbena.verbs.packet;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.OptionalInt;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.packet.ffm.IbUverbsFlowActionEsp;
import org.verbena.verbs.packet.ffm.IbUverbsFlowActionEspEncap;
import org.verbena.verbs.packet.ffm.IbUverbsFlowActionEspKeymatAesGcm;
import org.verbena.verbs.packet.ffm.IbUverbsFlowActionEspReplayBmp;
import org.verbena.verbs.packet.ffm.IbvFlowActionEspAttr;

/**
 * How a {@link FlowAction} changes ESP packets.
 *
 * <p>Source: ibv_flow_action_esp(3)
 *
 * @param association the security association; may be null to keep what there is
 * @param key the key; may be null to keep what there is
 * @param replayWindowPackets within how many packets repeated ones are recognised, with FULL_OFFLOAD; 0 for not at all
 * @param encapsulation headers that go around packets in tunnel mode, outermost first, with FULL_OFFLOAD: their values,
 *     masks are not used
 * @param extendedSequenceNumber the upper 32 bits of the first sequence number, if these are extended
 */
public record EspParameters(
        @Nullable EspAssociation association,
        @Nullable EspKey key,
        int replayWindowPackets,
        List<FlowMatch> encapsulation,
        OptionalInt extendedSequenceNumber) {
    /** {@code IBV_FLOW_ACTION_ESP_MASK_ESN}. */
    static final int WITH_ESN = 1;

    /** {@code IBV_FLOW_ACTION_ESP_KEYMAT_AES_GCM}. */
    static final int AES_GCM = 0;

    /** {@code IBV_FLOW_ACTION_IV_ALGO_SEQ}. */
    static final int SEQUENTIAL_VECTORS = 0;

    /** {@code IBV_FLOW_ACTION_ESP_REPLAY_BMP}. */
    static final int REPLAY_BITMAP = 1;

    /** No packet has as many headers. */
    private static final int MAX_ENCAPSULATION = 16;

    /** Copies the list and checks ranges. */
    public EspParameters {
        Ranges.check("replayWindowPackets", replayWindowPackets, 0, Integer.MAX_VALUE);
        encapsulation = List.copyOf(encapsulation);
        Ranges.check("number of headers", encapsulation.size(), 0, MAX_ENCAPSULATION);
    }

    /**
     * Without replay protection, encapsulation and extended sequence numbers.
     *
     * @param association the security association
     * @param key the key
     * @return the parameters
     */
    public static EspParameters of(EspAssociation association, EspKey key) {
        return new EspParameters(association, key, 0, List.of(), OptionalInt.empty());
    }

    /**
     * A new window of extended sequence numbers, for {@link FlowAction#modify}: due every 2^31 packets.
     *
     * @param association with ESN_NEW_WINDOW in the second half of the window
     * @param extendedSequenceNumber the upper 32 bits
     * @return the parameters
     */
    public static EspParameters window(EspAssociation association, int extendedSequenceNumber) {
        return new EspParameters(association, null, 0, List.of(), OptionalInt.of(extendedSequenceNumber));
    }

    /**
     * Calls with C's struct, and wipes the key from native memory afterwards.
     *
     * @param arena owns the struct
     * @param call takes the address of an {@code ibv_flow_action_esp_attr}
     * @return what it returned
     */
    long apply(Arena arena, LongUnaryOperator call) {
        MemorySegment attr = arena.allocate(IbvFlowActionEspAttr.LAYOUT);
        MemorySegment keyMaterial = arena.allocate(IbUverbsFlowActionEspKeymatAesGcm.LAYOUT);
        if (association != null) {
            attr.set(
                    CStruct.PTR,
                    IbvFlowActionEspAttr.ESP_ATTR,
                    association(arena, association).address());
        }
        if (key != null) {
            key.write(keyMaterial);
            keyMaterial.set(CStruct.U32, IbUverbsFlowActionEspKeymatAesGcm.IV_ALGO, SEQUENTIAL_VECTORS);
            attr.set(CStruct.ENUM, IbvFlowActionEspAttr.KEYMAT_PROTO, AES_GCM);
            attr.set(CStruct.U16, IbvFlowActionEspAttr.KEYMAT_LEN, (short) IbUverbsFlowActionEspKeymatAesGcm.SIZE);
            attr.set(CStruct.PTR, IbvFlowActionEspAttr.KEYMAT_PTR, keyMaterial.address());
        }
        if (replayWindowPackets > 0) {
            MemorySegment replay = arena.allocate(IbUverbsFlowActionEspReplayBmp.LAYOUT);
            replay.set(CStruct.U32, IbUverbsFlowActionEspReplayBmp.SIZE_MEMBER, replayWindowPackets);
            attr.set(CStruct.ENUM, IbvFlowActionEspAttr.REPLAY_PROTO, REPLAY_BITMAP);
            attr.set(CStruct.U16, IbvFlowActionEspAttr.REPLAY_LEN, (short) IbUverbsFlowActionEspReplayBmp.SIZE);
            attr.set(CStruct.PTR, IbvFlowActionEspAttr.REPLAY_PTR, replay.address());
        }
        long next = 0;
        for (FlowMatch header : encapsulation.reversed()) {
            next = encapsulation(arena, header, next).address();
        }
        attr.set(CStruct.PTR, IbvFlowActionEspAttr.ESP_ENCAP, next);
        if (extendedSequenceNumber.isPresent()) {
            attr.set(CStruct.U32, IbvFlowActionEspAttr.COMP_MASK, WITH_ESN);
            attr.set(CStruct.U32, IbvFlowActionEspAttr.ESN, extendedSequenceNumber.getAsInt());
        }
        try {
            return call.applyAsLong(attr.address());
        } finally {
            keyMaterial.fill((byte) 0);
        }
    }

    private static MemorySegment association(Arena arena, EspAssociation association) {
        MemorySegment esp = arena.allocate(IbUverbsFlowActionEsp.LAYOUT);
        esp.set(CStruct.U32, IbUverbsFlowActionEsp.SPI, association.securityParametersIndex());
        esp.set(CStruct.U32, IbUverbsFlowActionEsp.SEQ, association.sequenceNumber());
        esp.set(CStruct.U32, IbUverbsFlowActionEsp.TFC_PAD, association.paddingBytes());
        esp.set(CStruct.U32, IbUverbsFlowActionEsp.FLAGS, NativeConstant.mask(association.flags()));
        esp.set(CStruct.U64, IbUverbsFlowActionEsp.HARD_LIMIT_PKTS, association.hardLimitPackets());
        return esp;
    }

    private static MemorySegment encapsulation(Arena arena, FlowMatch header, long next) {
        MemorySegment filter = arena.allocate(header.filterBytes(), Integer.BYTES);
        header.writeValue(filter);
        MemorySegment encap = arena.allocate(IbUverbsFlowActionEspEncap.LAYOUT);
        encap.set(CStruct.PTR, IbUverbsFlowActionEspEncap.VAL_PTR, filter.address());
        encap.set(CStruct.PTR, IbUverbsFlowActionEspEncap.NEXT_PTR, next);
        encap.set(CStruct.U16, IbUverbsFlowActionEspEncap.LEN, (short) header.filterBytes());
        encap.set(CStruct.U16, IbUverbsFlowActionEspEncap.TYPE, (short) header.type());
        return encap;
    }
}
