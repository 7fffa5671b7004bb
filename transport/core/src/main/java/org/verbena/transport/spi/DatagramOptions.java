package org.verbena.transport.spi;

/**
 * The options of a datagram endpoint. Depths and elements up to those of {@link #DEFAULTS}, and inline bytes, are
 * wishes: a device that has less gives what it has, and the endpoint's capabilities say so. More is a demand, and fails
 * with the device's limit.
 *
 * @param sendDepth how many sends the device holds at once, 1 to 65536
 * @param receiveDepth how many receives can be posted, 1 to 65536; what comes while none is posted is lost
 * @param maxSges scatter/gather elements of one send, 1 to 256
 * @param maxInlineBytes datagrams of up to so many bytes are copied into the work request if the device can, 0 to 65536
 * @param trafficClass the IP type of service or traffic class of look-ups and of what is sent to their results, 0 to
 *     255
 * @param reuseAddress whether to share a port with another endpoint that allows it too
 */
public record DatagramOptions(
        int sendDepth, int receiveDepth, int maxSges, int maxInlineBytes, int trafficClass, boolean reuseAddress) {

    /** 256 sends, 128 receives, 4 elements, 128 bytes inline, no traffic class, no shared port. */
    public static final DatagramOptions DEFAULTS = new DatagramOptions(256, 128, 4, 128, 0, false);

    /** Checks ranges. */
    public DatagramOptions {
        check("sendDepth", sendDepth, 1, 1 << 16);
        check("receiveDepth", receiveDepth, 1, 1 << 16);
        check("maxSges", maxSges, 1, 256);
        check("maxInlineBytes", maxInlineBytes, 0, 1 << 16);
        check("trafficClass", trafficClass, 0, 255);
    }

    private static void check(String name, int value, int min, int max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(name + " " + value + " is not within " + min + " to " + max);
        }
    }
}
