package org.verbena.verbs.packet;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * The fields of a packet that a {@link ReceiveHash} uses. Fields of IPv4 and IPv6 do not go together, nor do those of
 * TCP and UDP.
 *
 * <p>Source: ibv_create_qp_ex(3)
 */
public enum ReceiveHashField implements NativeConstant {
    /** Its IPv4 source. */
    SRC_IPV4(1),
    /** Its IPv4 destination. */
    DST_IPV4(1 << 1),
    /** Its IPv6 source. */
    SRC_IPV6(1 << 2),
    /** Its IPv6 destination. */
    DST_IPV6(1 << 3),
    /** Its TCP source port. */
    SRC_PORT_TCP(1 << 4),
    /** Its TCP destination port. */
    DST_PORT_TCP(1 << 5),
    /** Its UDP source port. */
    SRC_PORT_UDP(1 << 6),
    /** Its UDP destination port. */
    DST_PORT_UDP(1 << 7),
    /** Its security parameters index. */
    IPSEC_SPI(1 << 8),
    /** The other fields are those inside of a tunnel. */
    INNER(1 << 31);

    private final int value;

    ReceiveHashField(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_RX_HASH_" + name();
    }
}
