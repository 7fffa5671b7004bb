package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvQpInitAttr;
import org.verbena.verbs.queue.QueuePairType;

/**
 * The options of a new queue pair.
 *
 * <p>Source: ibv_create_qp(3)
 *
 * @param type its transport service
 * @param sendCompletions where its send queue completes
 * @param receiveCompletions where its receives complete; may be the same
 * @param sharedReceives the shared receive queue that serves it, or null to post receives to itself
 * @param capabilities how large it is
 * @param signalAll whether every work request of the send queue makes a completion, flagged or not
 */
public record QueuePairOptions(
        QueuePairType type,
        CompletionQueue sendCompletions,
        CompletionQueue receiveCompletions,
        @Nullable SharedReceiveQueue sharedReceives,
        QueuePairCapabilities capabilities,
        boolean signalAll) {

    /**
     * A reliable connection that signals what is flagged.
     *
     * @param completions where both queues complete
     * @param capabilities how large it is
     * @return the options
     */
    public static QueuePairOptions reliable(CompletionQueue completions, QueuePairCapabilities capabilities) {
        return new QueuePairOptions(QueuePairType.RC, completions, completions, null, capabilities, false);
    }

    /**
     * The same with receives from a shared queue.
     *
     * @param receives the queue
     * @return the options
     */
    public QueuePairOptions withSharedReceives(SharedReceiveQueue receives) {
        return new QueuePairOptions(type, sendCompletions, receiveCompletions, receives, capabilities, signalAll);
    }

    /**
     * The same of another size.
     *
     * @param other how large
     * @return the options
     */
    public QueuePairOptions withCapabilities(QueuePairCapabilities other) {
        return new QueuePairOptions(type, sendCompletions, receiveCompletions, sharedReceives, other, signalAll);
    }

    /**
     * The same for another transport service.
     *
     * @param other the service
     * @return the options
     */
    public QueuePairOptions withType(QueuePairType other) {
        return new QueuePairOptions(
                other, sendCompletions, receiveCompletions, sharedReceives, capabilities, signalAll);
    }

    /**
     * The C struct, for bindings of libraries that create queue pairs, such as librdmacm's {@code rdma_create_qp}.
     *
     * @param arena owns the struct
     * @return an {@code ibv_qp_init_attr}; C writes what it granted back into it
     */
    public MemorySegment toNative(Arena arena) {
        MemorySegment attr = arena.allocate(IbvQpInitAttr.LAYOUT);
        attr.set(CStruct.PTR, IbvQpInitAttr.SEND_CQ, sendCompletions.nativeAddress());
        attr.set(CStruct.PTR, IbvQpInitAttr.RECV_CQ, receiveCompletions.nativeAddress());
        attr.set(CStruct.PTR, IbvQpInitAttr.SRQ, sharedReceives == null ? 0 : sharedReceives.nativeAddress());
        capabilities.write(attr, IbvQpInitAttr.CAP);
        attr.set(CStruct.ENUM, IbvQpInitAttr.QP_TYPE, type.value());
        attr.set(CStruct.I32, IbvQpInitAttr.SQ_SIG_ALL, signalAll ? 1 : 0);
        return attr;
    }

    /**
     * The same with the sizes that C granted.
     *
     * @param ibvQpInitAttr from {@link #toNative}, after the queue pair was created
     * @return the options in force
     */
    public QueuePairOptions granted(MemorySegment ibvQpInitAttr) {
        return new QueuePairOptions(
                type,
                sendCompletions,
                receiveCompletions,
                sharedReceives,
                QueuePairCapabilities.read(ibvQpInitAttr, IbvQpInitAttr.CAP),
                signalAll);
    }
}
