package org.verbena.verbs.queue;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * Special ways to create a queue pair.
 *
 * <p>Source: ibv_create_qp_ex(3)
 */
public enum QueuePairCreateFlag implements NativeConstant {
    /** Its own multicasts do not come back. */
    BLOCK_SELF_MCAST_LB(2),
    /** Raw packets come with their frame check sequence. */
    SCATTER_FCS(0x100),
    /** VLAN tags are taken off raw packets. */
    CVLAN_STRIPPING(0x200),
    /** Datagrams carry another source number. */
    SOURCE_QPN(0x400),
    /** The device pads its writes to cache lines. */
    PCI_WRITE_END_PADDING(0x800);

    private final int value;

    QueuePairCreateFlag(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_QP_CREATE_" + name();
    }
}
