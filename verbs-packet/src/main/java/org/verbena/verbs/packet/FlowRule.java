package org.verbena.verbs.packet;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.verbena.verbs.PacketObject;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.packet.ffm.IbvFlowAttr;

/**
 * Selects the packets that a queue pair receives by their headers; {@link Flow#create} activates it.
 *
 * <pre>{@code
 * FlowRule.steering(
 *         1,
 *         FlowMatch.of(FlowHeader.ETHERNET).field(FlowField.DESTINATION_MAC, mac),
 *         FlowMatch.of(FlowHeader.UDP).field(FlowField.DESTINATION_PORT, 5000),
 *         FlowEffect.count(counters));
 * }</pre>
 *
 * <p>Source: ibv_create_flow(3)
 *
 * @param type which packets it is for
 * @param priority rules with a lower one are checked first; 0 to 65535
 * @param port of the device, 1 to 255
 * @param flags special behaviour
 * @param specs its parts, at most 255; their order matters only with {@link FlowHeader#MPLS}
 */
public record FlowRule(FlowRuleType type, int priority, int port, Set<FlowFlag> flags, List<FlowSpec> specs) {
    /** C counts parts in one byte. */
    static final int MAX_SPECS = 0xff;

    /** Copies the collections and checks ranges. */
    public FlowRule {
        Ranges.check("priority", priority, 0, 0xffff);
        Ranges.check("port", port, 1, 0xff);
        flags = Set.copyOf(flags);
        specs = List.copyOf(specs);
        Ranges.check("number of specs", specs.size(), 0, MAX_SPECS);
        if (flags.contains(FlowFlag.DONT_TRAP) && type != FlowRuleType.NORMAL) {
            throw new IllegalArgumentException("DONT_TRAP is for NORMAL rules, not for " + type);
        }
    }

    /**
     * For packets with these headers.
     *
     * @param port of the device
     * @param specs its parts
     * @return the rule, of priority 0
     */
    public static FlowRule steering(int port, FlowSpec... specs) {
        return new FlowRule(FlowRuleType.NORMAL, 0, port, Set.of(), List.of(specs));
    }

    /**
     * For packets as a whole.
     *
     * @param type ALL_DEFAULT, MC_DEFAULT or SNIFFER
     * @param port of the device
     * @return the rule, of priority 0
     */
    public static FlowRule of(FlowRuleType type, int port) {
        return new FlowRule(type, 0, port, Set.of(), List.of());
    }

    /**
     * The same with another priority.
     *
     * @param other the priority
     * @return the rule
     */
    public FlowRule withPriority(int other) {
        return new FlowRule(type, other, port, flags, specs);
    }

    /**
     * The same with other flags.
     *
     * @param others the flags
     * @return the rule
     */
    public FlowRule withFlags(Set<FlowFlag> others) {
        return new FlowRule(type, priority, port, others, specs);
    }

    /** What has to live as long as the rule is in force, each once. */
    List<PacketObject> needs() {
        List<PacketObject> needs = new ArrayList<>();
        for (FlowSpec spec : specs) {
            PacketObject object = spec.needs();
            if (object != null && !needs.contains(object)) {
                needs.add(object);
            }
        }
        return needs;
    }

    /**
     * C's struct with its parts behind.
     *
     * @param arena owns it
     * @return an {@code ibv_flow_attr}
     */
    MemorySegment toNative(Arena arena) {
        long size =
                IbvFlowAttr.SIZE + specs.stream().mapToLong(FlowSpec::sizeBytes).sum();
        MemorySegment attr = arena.allocate(size, Long.BYTES);
        attr.set(CStruct.ENUM, IbvFlowAttr.TYPE, type.value());
        attr.set(CStruct.U16, IbvFlowAttr.SIZE_MEMBER, (short) size);
        attr.set(CStruct.U16, IbvFlowAttr.PRIORITY, (short) priority);
        attr.set(CStruct.U8, IbvFlowAttr.NUM_OF_SPECS, (byte) specs.size());
        attr.set(CStruct.U8, IbvFlowAttr.PORT, (byte) port);
        attr.set(CStruct.U32, IbvFlowAttr.FLAGS, NativeConstant.mask(flags));
        long at = IbvFlowAttr.SIZE;
        for (FlowSpec spec : specs) {
            spec.write(attr.asSlice(at, spec.sizeBytes()));
            at += spec.sizeBytes();
        }
        return attr;
    }
}
