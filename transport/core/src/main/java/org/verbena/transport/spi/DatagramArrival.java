package org.verbena.transport.spi;

/** What a device reports about a datagram that it has received. Reused: valid during a callback. */
public final class DatagramArrival {
    private int lengthBytes;
    private int sourceQueuePairNumber;
    private int sourceLid;
    private int serviceLevel;
    private boolean hasGlobalRouteHeader;
    private boolean hasImmediateData;
    private int immediateData;

    /** For a provider. */
    public DatagramArrival() {}

    /**
     * Sets where it comes from.
     *
     * @param queuePairNumber that sent it, 24 bits
     * @param lid of the port that sent it on InfiniBand; 0 on RoCE
     * @param level the service level, 0 to 15
     * @param hasHeader whether the headroom holds a global route header
     */
    public void source(int queuePairNumber, int lid, int level, boolean hasHeader) {
        sourceQueuePairNumber = queuePairNumber;
        sourceLid = lid;
        serviceLevel = level;
        hasGlobalRouteHeader = hasHeader;
    }

    /**
     * Sets what came.
     *
     * @param bytes its length with the headroom
     * @param hasImmediate whether it has immediate data
     * @param immediate in host order
     */
    public void message(int bytes, boolean hasImmediate, int immediate) {
        lengthBytes = bytes;
        hasImmediateData = hasImmediate;
        immediateData = immediate;
    }

    /**
     * How many bytes of the receive's buffer it fills.
     *
     * @return its length with the headroom
     */
    public int lengthBytes() {
        return lengthBytes;
    }

    /**
     * Which queue pair sent it.
     *
     * @return 24 bits
     */
    public int sourceQueuePairNumber() {
        return sourceQueuePairNumber;
    }

    /**
     * Which port of the subnet sent it.
     *
     * @return its LID on InfiniBand; 0 on RoCE
     */
    public int sourceLid() {
        return sourceLid;
    }

    /**
     * The service level that it came with.
     *
     * @return 0 to 15
     */
    public int serviceLevel() {
        return serviceLevel;
    }

    /**
     * Whether the headroom holds a global route header.
     *
     * @return always on RoCE; on InfiniBand only if the sender put one there
     */
    public boolean hasGlobalRouteHeader() {
        return hasGlobalRouteHeader;
    }

    /**
     * Whether the sender added immediate data.
     *
     * @return whether {@link #immediateData} has a meaning
     */
    public boolean hasImmediateData() {
        return hasImmediateData;
    }

    /**
     * The sender's immediate data.
     *
     * @return in host order
     */
    public int immediateData() {
        return immediateData;
    }
}
