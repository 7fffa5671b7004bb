package org.verbena.verbs;

import java.util.Arrays;
import java.util.HexFormat;

/**
 * The destination of packets on Ethernet.
 *
 * <p>Source: infiniband/verbs.h, ibv_resolve_eth_l2_from_gid
 *
 * @param mac six bytes
 * @param vlan 0 to 4095, or {@link #NO_VLAN}
 */
public record EthernetAddress(byte[] mac, int vlan) {
    /** Without a VLAN. */
    public static final int NO_VLAN = -1;

    /** The highest VLAN. */
    public static final int MAX_VLAN = 0xfff;

    /** The length of a MAC address, in bytes. */
    public static final int MAC_BYTES = 6;

    /** Copies the address. */
    public EthernetAddress {
        mac = mac.clone();
        if (mac.length != MAC_BYTES) {
            throw new IllegalArgumentException("a MAC address has 6 bytes, not " + mac.length);
        }
    }

    /**
     * The MAC address.
     *
     * @return 6 bytes, a copy
     */
    @Override
    public byte[] mac() {
        return mac.clone();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof EthernetAddress that && vlan == that.vlan && Arrays.equals(mac, that.mac);
    }

    @Override
    public int hashCode() {
        return 31 * Arrays.hashCode(mac) + vlan;
    }

    @Override
    public String toString() {
        return HexFormat.ofDelimiter(":").formatHex(mac) + (vlan == NO_VLAN ? "" : " vlan " + vlan);
    }
}
