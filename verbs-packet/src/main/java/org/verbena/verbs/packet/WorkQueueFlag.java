package org.verbena.verbs.packet;

import org.verbena.verbs.ffm.NativeConstant;

/**
 * What a {@link ReceiveWorkQueue} does to packets.
 *
 * <p>Source: ibv_create_wq(3)
 */
public enum WorkQueueFlag implements NativeConstant {
    /** VLAN tags are taken off. */
    CVLAN_STRIPPING(1),
    /** Packets come with their frame check sequence. */
    SCATTER_FCS(2),
    /** Packets that find no receive wait before they are dropped. */
    DELAY_DROP(4),
    /** The device pads its writes to cache lines. */
    PCI_WRITE_END_PADDING(8);

    private final int value;

    WorkQueueFlag(int value) {
        this.value = value;
    }

    @Override
    public int value() {
        return value;
    }

    @Override
    public String cName() {
        return "IBV_WQ_FLAGS_" + name();
    }
}
