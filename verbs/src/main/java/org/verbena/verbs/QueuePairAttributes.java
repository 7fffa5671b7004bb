package org.verbena.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Set;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.device.DeviceCapability;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.IbvQpAttr;
import org.verbena.verbs.ffm.NativeConstant;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.queue.MigrationState;
import org.verbena.verbs.queue.QueuePairAttribute;
import org.verbena.verbs.queue.QueuePairState;

/**
 * Some attributes of a queue pair: those to modify, or those a query answered. Immutable.
 *
 * <pre>{@code
 * queuePair.modify(QueuePairAttributes.to(QueuePairState.INIT)
 *         .portNumber(1).pkeyIndex(0).accessFlags(REMOTE_READ, REMOTE_WRITE).build());
 * }</pre>
 *
 * <p>Source: ibv_modify_qp(3), ibv_query_qp(3)
 */
public final class QueuePairAttributes {
    /** An {@code ibv_qp_attr}, on the heap. */
    private final long[] words;

    private final MemorySegment struct;
    private final int mask;

    private QueuePairAttributes(long[] words, int mask) {
        this.words = words;
        this.struct = MemorySegment.ofArray(words);
        this.mask = mask;
    }

    /**
     * Begins a transition.
     *
     * @param state the state to go to
     * @return a builder
     */
    public static Builder to(QueuePairState state) {
        return new Builder().state(state);
    }

    /**
     * Begins a change within the present state.
     *
     * @return a builder
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Reads the C struct, for bindings of libraries that make attributes, such as librdmacm's {@code
     * rdma_init_qp_attr}.
     *
     * @param attr an {@code ibv_qp_attr}
     * @param mask which of its attributes are set, as C's bits
     * @return the attributes
     */
    public static QueuePairAttributes read(MemorySegment attr, int mask) {
        long[] words = new long[WORDS];
        MemorySegment.copy(attr, 0, MemorySegment.ofArray(words), 0, IbvQpAttr.SIZE);
        return new QueuePairAttributes(words, mask);
    }

    private static final int WORDS = (int) (IbvQpAttr.SIZE / Long.BYTES);

    /**
     * The C struct.
     *
     * @param arena owns the struct
     * @return an {@code ibv_qp_attr}
     */
    public MemorySegment toNative(Arena arena) {
        MemorySegment attr = arena.allocate(IbvQpAttr.LAYOUT);
        attr.copyFrom(struct);
        return attr;
    }

    /**
     * The attributes that are set.
     *
     * @return C's bits
     */
    public int mask() {
        return mask;
    }

    /**
     * The attributes that are set.
     *
     * @return a set of its own
     */
    public Set<QueuePairAttribute> present() {
        return NativeConstant.set(QueuePairAttribute.class, mask);
    }

    private MemorySegment struct(QueuePairAttribute attribute) {
        if ((mask & attribute.value()) == 0) {
            throw new IllegalStateException(attribute + " is not among " + present());
        }
        return struct;
    }

    /**
     * The state.
     *
     * @return the state
     */
    public QueuePairState state() {
        return QueuePairState.of(struct(QueuePairAttribute.STATE).get(CStruct.ENUM, IbvQpAttr.QP_STATE));
    }

    /**
     * The state it is in.
     *
     * @return the state
     */
    public QueuePairState currentState() {
        return QueuePairState.of(struct(QueuePairAttribute.CUR_STATE).get(CStruct.ENUM, IbvQpAttr.CUR_QP_STATE));
    }

    /**
     * Whether the send queue is draining: SQD has been asked for and is not complete. Of a query of the state.
     *
     * @return true while it drains
     */
    public boolean isSendQueueDraining() {
        return struct(QueuePairAttribute.STATE).get(CStruct.U8, IbvQpAttr.SQ_DRAINING) != 0;
    }

    /**
     * The peer's rights.
     *
     * @return REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC
     */
    public Set<AccessFlag> accessFlags() {
        return NativeConstant.set(
                AccessFlag.class, struct(QueuePairAttribute.ACCESS_FLAGS).get(CStruct.U32, IbvQpAttr.QP_ACCESS_FLAGS));
    }

    /**
     * The packet size.
     *
     * @return the MTU of the path
     */
    public Mtu pathMtu() {
        return Mtu.of(struct(QueuePairAttribute.PATH_MTU).get(CStruct.ENUM, IbvQpAttr.PATH_MTU));
    }

    /**
     * The state of path migration.
     *
     * @return the state
     */
    public MigrationState migrationState() {
        return MigrationState.of(struct(QueuePairAttribute.PATH_MIG_STATE).get(CStruct.ENUM, IbvQpAttr.PATH_MIG_STATE));
    }

    /**
     * The Q_Key.
     *
     * @return 32 bits
     */
    public int qkey() {
        return struct(QueuePairAttribute.QKEY).get(CStruct.U32, IbvQpAttr.QKEY);
    }

    /**
     * The address of the peer.
     *
     * @return the address
     */
    public AddressVector address() {
        return AddressVector.read(struct(QueuePairAttribute.AV), IbvQpAttr.AH_ATTR);
    }

    /**
     * The alternate path to the peer.
     *
     * @return the address
     */
    public AddressVector alternateAddress() {
        return AddressVector.read(struct(QueuePairAttribute.ALT_PATH), IbvQpAttr.ALT_AH_ATTR);
    }

    /**
     * The index of the P_Key on the alternate path.
     *
     * @return 0 to 65535
     */
    public int alternatePkeyIndex() {
        return Short.toUnsignedInt(struct(QueuePairAttribute.ALT_PATH).get(CStruct.U16, IbvQpAttr.ALT_PKEY_INDEX));
    }

    /**
     * The local port of the alternate path.
     *
     * @return 1 or more; 0 of a query where no path was given
     */
    public int alternatePortNumber() {
        return Byte.toUnsignedInt(struct(QueuePairAttribute.ALT_PATH).get(CStruct.U8, IbvQpAttr.ALT_PORT_NUM));
    }

    /**
     * How long to wait for an acknowledgement on the alternate path, as an exponent like {@link #timeout}.
     *
     * @return 0 to 31
     */
    public int alternateTimeout() {
        return Byte.toUnsignedInt(struct(QueuePairAttribute.ALT_PATH).get(CStruct.U8, IbvQpAttr.ALT_TIMEOUT));
    }

    /**
     * The sizes.
     *
     * @return the sizes
     */
    public QueuePairCapabilities capabilities() {
        return QueuePairCapabilities.read(struct(QueuePairAttribute.CAP), IbvQpAttr.CAP);
    }

    /**
     * The rate limit.
     *
     * @return kilobits a second
     */
    public int rateLimitKilobitsPerSecond() {
        return struct(QueuePairAttribute.RATE_LIMIT).get(CStruct.U32, IbvQpAttr.RATE_LIMIT);
    }

    /**
     * The port.
     *
     * @return 1 or more
     */
    public int portNumber() {
        return Byte.toUnsignedInt(struct(QueuePairAttribute.PORT).get(CStruct.U8, IbvQpAttr.PORT_NUM));
    }

    /**
     * The index of the P_Key.
     *
     * @return 0 to 65535; 0 is the default key
     */
    public int pkeyIndex() {
        return Short.toUnsignedInt(struct(QueuePairAttribute.PKEY_INDEX).get(CStruct.U16, IbvQpAttr.PKEY_INDEX));
    }

    /**
     * The number of the peer's queue pair.
     *
     * @return 24 bits
     */
    public int destinationQueuePair() {
        return struct(QueuePairAttribute.DEST_QPN).get(CStruct.U32, IbvQpAttr.DEST_QP_NUM);
    }

    /**
     * The first packet number to expect: the peer's sendPsn.
     *
     * @return 24 bits
     */
    public int receivePsn() {
        return struct(QueuePairAttribute.RQ_PSN).get(CStruct.U32, IbvQpAttr.RQ_PSN);
    }

    /**
     * The first packet number to send.
     *
     * @return 24 bits; better random
     */
    public int sendPsn() {
        return struct(QueuePairAttribute.SQ_PSN).get(CStruct.U32, IbvQpAttr.SQ_PSN);
    }

    /**
     * How long to wait for an acknowledgement, as an exponent: 4.096 us * 2^n.
     *
     * @return 0 to 31; 0 waits forever, 14 is 67 ms
     */
    public int timeout() {
        return Byte.toUnsignedInt(struct(QueuePairAttribute.TIMEOUT).get(CStruct.U8, IbvQpAttr.TIMEOUT));
    }

    /**
     * The number of retries without an acknowledgement.
     *
     * @return 0 to 7; with 0 one lost packet ends the connection
     */
    public int retryCount() {
        return Byte.toUnsignedInt(struct(QueuePairAttribute.RETRY_CNT).get(CStruct.U8, IbvQpAttr.RETRY_CNT));
    }

    /**
     * The number of retries when the peer has no receive posted.
     *
     * @return 0 to 7; 7 retries forever
     */
    public int rnrRetryCount() {
        return Byte.toUnsignedInt(struct(QueuePairAttribute.RNR_RETRY).get(CStruct.U8, IbvQpAttr.RNR_RETRY));
    }

    /**
     * How long the peer should wait when no receive is posted, in C's encoding.
     *
     * @return 0 to 31; 1 is 0.01 ms, 12 is 0.64 ms, 0 is 655 ms
     */
    public int minRnrTimer() {
        return Byte.toUnsignedInt(struct(QueuePairAttribute.MIN_RNR_TIMER).get(CStruct.U8, IbvQpAttr.MIN_RNR_TIMER));
    }

    /**
     * Reads and atomics outstanding that this side may start.
     *
     * @return 0 to 255
     */
    public int maxReadsAsInitiator() {
        return Byte.toUnsignedInt(struct(QueuePairAttribute.MAX_QP_RD_ATOMIC).get(CStruct.U8, IbvQpAttr.MAX_RD_ATOMIC));
    }

    /**
     * Reads and atomics outstanding that the peer may start.
     *
     * @return 0 to 255
     */
    public int maxReadsAsTarget() {
        return Byte.toUnsignedInt(
                struct(QueuePairAttribute.MAX_DEST_RD_ATOMIC).get(CStruct.U8, IbvQpAttr.MAX_DEST_RD_ATOMIC));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof QueuePairAttributes that && mask == that.mask && Arrays.equals(words, that.words);
    }

    @Override
    public int hashCode() {
        return 31 * mask + Arrays.hashCode(words);
    }

    @Override
    public String toString() {
        return (mask & QueuePairAttribute.STATE.value()) != 0
                ? state() + " with " + present()
                : present().toString();
    }

    /** Collects attributes and checks their ranges. Reusable; one thread. */
    public static final class Builder {
        private final long[] words = new long[WORDS];
        private final MemorySegment struct = MemorySegment.ofArray(words);
        private int mask;

        private Builder() {}

        private MemorySegment with(QueuePairAttribute attribute) {
            mask |= attribute.value();
            return struct;
        }

        /**
         * Sets the state to go to.
         *
         * @param state the state
         * @return this
         */
        public Builder state(QueuePairState state) {
            with(QueuePairAttribute.STATE).set(CStruct.ENUM, IbvQpAttr.QP_STATE, state.value());
            return this;
        }

        /**
         * Sets the current state if C cannot know it: after a transition from RTR to RTS by an arriving message, or in
         * SQE.
         *
         * @param state the state
         * @return this
         */
        public Builder currentState(QueuePairState state) {
            with(QueuePairAttribute.CUR_STATE).set(CStruct.ENUM, IbvQpAttr.CUR_QP_STATE, state.value());
            return this;
        }

        /**
         * Requests an {@link AsyncEventType#SQ_DRAINED} event when the send queue has drained.
         *
         * @param notify whether
         * @return this
         */
        public Builder notifyWhenDrained(boolean notify) {
            with(QueuePairAttribute.EN_SQD_ASYNC_NOTIFY)
                    .set(CStruct.U8, IbvQpAttr.EN_SQD_ASYNC_NOTIFY, (byte) (notify ? 1 : 0));
            return this;
        }

        /**
         * Sets the peer's rights.
         *
         * @param flags some of REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC; none to allow only sends
         * @return this
         */
        public Builder accessFlags(AccessFlag... flags) {
            EnumSet<AccessFlag> set = EnumSet.noneOf(AccessFlag.class);
            set.addAll(Arrays.asList(flags));
            with(QueuePairAttribute.ACCESS_FLAGS).set(CStruct.U32, IbvQpAttr.QP_ACCESS_FLAGS, NativeConstant.mask(set));
            return this;
        }

        /**
         * Sets the packet size.
         *
         * @param mtu at most the port's active MTU, and the same on both sides
         * @return this
         */
        public Builder pathMtu(Mtu mtu) {
            if (mtu == Mtu.UNKNOWN) {
                throw new IllegalArgumentException("pathMtu UNKNOWN: the port has none, see PortAttributes.state()");
            }
            with(QueuePairAttribute.PATH_MTU).set(CStruct.ENUM, IbvQpAttr.PATH_MTU, mtu.value());
            return this;
        }

        /**
         * Sets the state of path migration.
         *
         * @param state the state
         * @return this
         */
        public Builder migrationState(MigrationState state) {
            with(QueuePairAttribute.PATH_MIG_STATE).set(CStruct.ENUM, IbvQpAttr.PATH_MIG_STATE, state.value());
            return this;
        }

        /**
         * Sets the Q_Key.
         *
         * @param qkey 32 bits; datagrams with another one are dropped
         * @return this
         */
        public Builder qkey(int qkey) {
            with(QueuePairAttribute.QKEY).set(CStruct.U32, IbvQpAttr.QKEY, qkey);
            return this;
        }

        /**
         * Sets the address of the peer.
         *
         * @param address of the peer
         * @return this
         */
        public Builder address(AddressVector address) {
            address.write(with(QueuePairAttribute.AV), IbvQpAttr.AH_ATTR);
            return this;
        }

        /**
         * Sets the alternate path to the peer, for automatic path migration: only for InfiniBand, on devices with
         * {@link DeviceCapability#AUTO_PATH_MIG}. Both sides give one and go to {@link MigrationState#REARM}; once
         * armed, a path that fails is left for the other with {@link AsyncEventType#PATH_MIG}, or {@link
         * AsyncEventType#PATH_MIG_ERR} if that fails. Linux refuses it with EINVAL on RoCE, even where the device
         * claims the capability.
         *
         * @param address of the peer, by the alternate port
         * @param pkeyIndex the index of its P_Key, 0 to 65535
         * @param timeout as {@link #timeout}, 0 to 31
         * @return this
         */
        public Builder alternatePath(AddressVector address, int pkeyIndex, int timeout) {
            MemorySegment attr = with(QueuePairAttribute.ALT_PATH);
            address.write(attr, IbvQpAttr.ALT_AH_ATTR);
            attr.set(CStruct.U16, IbvQpAttr.ALT_PKEY_INDEX, (short) Ranges.check("pkeyIndex", pkeyIndex, 0, 0xffff));
            attr.set(CStruct.U8, IbvQpAttr.ALT_PORT_NUM, (byte) address.port());
            attr.set(CStruct.U8, IbvQpAttr.ALT_TIMEOUT, (byte) Ranges.check("timeout", timeout, 0, 31));
            return this;
        }

        /**
         * Sets the sizes, on devices with {@link DeviceCapability#RESIZE_MAX_WR}.
         *
         * @param capabilities the sizes
         * @return this
         */
        public Builder capabilities(QueuePairCapabilities capabilities) {
            capabilities.write(with(QueuePairAttribute.CAP), IbvQpAttr.CAP);
            return this;
        }

        /**
         * Sets a rate limit; raw packet queue pairs only.
         *
         * @param kilobitsPerSecond 0 for none
         * @return this
         */
        public Builder rateLimitKilobitsPerSecond(int kilobitsPerSecond) {
            with(QueuePairAttribute.RATE_LIMIT).set(CStruct.U32, IbvQpAttr.RATE_LIMIT, kilobitsPerSecond);
            return this;
        }

        /**
         * Sets the port.
         *
         * @param value 1 or more
         * @return this
         */
        public Builder portNumber(int value) {
            with(QueuePairAttribute.PORT)
                    .set(CStruct.U8, IbvQpAttr.PORT_NUM, (byte) Ranges.check("portNumber", value, 1, 255));
            return this;
        }

        /**
         * Sets the index of the P_Key.
         *
         * @param value 0 to 65535; 0 is the default key
         * @return this
         */
        public Builder pkeyIndex(int value) {
            with(QueuePairAttribute.PKEY_INDEX)
                    .set(CStruct.U16, IbvQpAttr.PKEY_INDEX, (short) Ranges.check("pkeyIndex", value, 0, 65535));
            return this;
        }

        /**
         * Sets the number of the peer's queue pair.
         *
         * @param value 24 bits
         * @return this
         */
        public Builder destinationQueuePair(int value) {
            with(QueuePairAttribute.DEST_QPN)
                    .set(CStruct.U32, IbvQpAttr.DEST_QP_NUM, Ranges.check("destinationQueuePair", value, 0, 0xffffff));
            return this;
        }

        /**
         * Sets the first packet number to expect: the peer's sendPsn.
         *
         * @param value 24 bits
         * @return this
         */
        public Builder receivePsn(int value) {
            with(QueuePairAttribute.RQ_PSN)
                    .set(CStruct.U32, IbvQpAttr.RQ_PSN, Ranges.check("receivePsn", value, 0, 0xffffff));
            return this;
        }

        /**
         * Sets the first packet number to send.
         *
         * @param value 24 bits; better random
         * @return this
         */
        public Builder sendPsn(int value) {
            with(QueuePairAttribute.SQ_PSN)
                    .set(CStruct.U32, IbvQpAttr.SQ_PSN, Ranges.check("sendPsn", value, 0, 0xffffff));
            return this;
        }

        /**
         * Sets how long to wait for an acknowledgement, as an exponent: 4.096 us * 2^n.
         *
         * @param value 0 to 31; 0 waits forever, 14 is 67 ms
         * @return this
         */
        public Builder timeout(int value) {
            with(QueuePairAttribute.TIMEOUT)
                    .set(CStruct.U8, IbvQpAttr.TIMEOUT, (byte) Ranges.check("timeout", value, 0, 31));
            return this;
        }

        /**
         * Sets how often to try again without an acknowledgement.
         *
         * @param value 0 to 7; with 0 one lost packet ends the connection
         * @return this
         */
        public Builder retryCount(int value) {
            with(QueuePairAttribute.RETRY_CNT)
                    .set(CStruct.U8, IbvQpAttr.RETRY_CNT, (byte) Ranges.check("retryCount", value, 0, 7));
            return this;
        }

        /**
         * Sets how often to try again when the peer has no receive posted.
         *
         * @param value 0 to 7; 7 retries forever
         * @return this
         */
        public Builder rnrRetryCount(int value) {
            with(QueuePairAttribute.RNR_RETRY)
                    .set(CStruct.U8, IbvQpAttr.RNR_RETRY, (byte) Ranges.check("rnrRetryCount", value, 0, 7));
            return this;
        }

        /**
         * Sets how long the peer should wait when no receive is posted, in C's encoding.
         *
         * @param value 0 to 31; 1 is 0.01 ms, 12 is 0.64 ms, 0 is 655 ms
         * @return this
         */
        public Builder minRnrTimer(int value) {
            with(QueuePairAttribute.MIN_RNR_TIMER)
                    .set(CStruct.U8, IbvQpAttr.MIN_RNR_TIMER, (byte) Ranges.check("minRnrTimer", value, 0, 31));
            return this;
        }

        /**
         * Sets reads and atomics outstanding that this side may start.
         *
         * @param value 0 to 255
         * @return this
         */
        public Builder maxReadsAsInitiator(int value) {
            with(QueuePairAttribute.MAX_QP_RD_ATOMIC).set(CStruct.U8, IbvQpAttr.MAX_RD_ATOMIC, (byte)
                    Ranges.check("maxReadsAsInitiator", value, 0, 255));
            return this;
        }

        /**
         * Sets reads and atomics outstanding that the peer may start.
         *
         * @param value 0 to 255
         * @return this
         */
        public Builder maxReadsAsTarget(int value) {
            with(QueuePairAttribute.MAX_DEST_RD_ATOMIC).set(CStruct.U8, IbvQpAttr.MAX_DEST_RD_ATOMIC, (byte)
                    Ranges.check("maxReadsAsTarget", value, 0, 255));
            return this;
        }

        /**
         * Builds the attributes. The builder can be used further.
         *
         * @return the attributes
         */
        public QueuePairAttributes build() {
            return new QueuePairAttributes(words.clone(), mask);
        }
    }
}
