package org.verbena.verbs.packet;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.CompletionReader;
import org.verbena.verbs.PacketObject;
import org.verbena.verbs.packet.ffm.IbvFlowSpecActionHandle;
import org.verbena.verbs.packet.ffm.IbvFlowSpecActionTag;
import org.verbena.verbs.packet.ffm.IbvFlowSpecCounterAction;

/**
 * What a {@link FlowRule} does with packets that match, besides giving them to its queue pair.
 *
 * <p>Source: ibv_create_flow(3)
 */
public final class FlowEffect extends FlowSpec {
    private final FlowSpecType type;
    private final int tag;
    private final @Nullable PacketObject object;

    private FlowEffect(FlowSpecType type, int tag, @Nullable PacketObject object) {
        this.type = type;
        this.tag = tag;
        this.object = object;
    }

    /**
     * Marks packets: their completions carry the mark, see {@link CompletionReader#flowTag()}.
     *
     * @param tag the mark; devices take 24 bits
     * @return the effect
     */
    public static FlowEffect tag(int tag) {
        return new FlowEffect(FlowSpecType.ACTION_TAG, tag, null);
    }

    /**
     * Drops packets.
     *
     * @return the effect
     */
    public static FlowEffect drop() {
        return new FlowEffect(FlowSpecType.ACTION_DROP, 0, null);
    }

    /**
     * Changes packets: decrypts or encrypts them.
     *
     * @param action how; it cannot be closed before the flow
     * @return the effect
     */
    public static FlowEffect change(FlowAction action) {
        return new FlowEffect(FlowSpecType.ACTION_HANDLE, 0, action);
    }

    /**
     * Counts packets.
     *
     * @param counters where; what they count has been attached before. They cannot be closed before the flow
     * @return the effect
     */
    public static FlowEffect count(Counters counters) {
        return new FlowEffect(FlowSpecType.ACTION_COUNT, 0, counters);
    }

    @Override
    int type() {
        return type.value();
    }

    @Override
    long sizeBytes() {
        return type.sizeBytes();
    }

    @Override
    void writeBody(MemorySegment part) {
        if (type == FlowSpecType.ACTION_TAG) {
            part.set(INT, IbvFlowSpecActionTag.TAG_ID, tag);
        }
        if (object != null) {
            part.set(
                    LONG,
                    type == FlowSpecType.ACTION_HANDLE
                            ? IbvFlowSpecActionHandle.ACTION
                            : IbvFlowSpecCounterAction.COUNTERS,
                    object.nativeAddress());
        }
    }

    @Override
    @Nullable PacketObject needs() {
        return object;
    }

    @Override
    public String toString() {
        return type + (type == FlowSpecType.ACTION_TAG ? " " + tag : object == null ? "" : " " + object);
    }
}
