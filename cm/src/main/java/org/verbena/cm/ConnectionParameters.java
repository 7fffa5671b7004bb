package org.verbena.cm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.verbena.cm.ffm.RdmaConnParam;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Pointers;

/**
 * The parameters of a connection that one side requests, or that the peer has sent.
 *
 * <p>Private data belongs to the application, and is sent with the request, the answer or the rejection. Its limit
 * depends on the transport and the message; {@link CmId} rejects longer data with an exception that names the limit.
 *
 * @param privateData copied; not null, at most 255 bytes
 * @param responderResources how many RDMA reads and atomics of the peer this side serves at a time; 0 to 255, 255 for
 *     the device's maximum
 * @param initiatorDepth how many RDMA reads and atomics this side has under way at a time; 0 to 255, 255 for the
 *     device's maximum
 * @param flowControl whether the hardware has end-to-end flow control; sent to the peer, not used
 * @param retryCount how often a send is repeated without an acknowledgement before the connection fails; 0 to 7.
 *     Without repeats a single lost packet ends the connection. Ignored when accepting, and by iWARP, where TCP repeats
 * @param rnrRetryCount how often the peer's sends are repeated while no receive is posted here; 0 to 7, where 7 is for
 *     ever. iWARP has none
 * @param sharedReceiveQueue whether the queue pair takes its receives from a shared queue; only for ids without a queue
 *     pair
 * @param queuePairNumber of a queue pair created separately from the id; only for ids without one <p>Source:
 *     rdma_connect(3), rdma_accept(3)
 */
public record ConnectionParameters(
        byte[] privateData,
        int responderResources,
        int initiatorDepth,
        boolean flowControl,
        int retryCount,
        int rnrRetryCount,
        boolean sharedReceiveQueue,
        int queuePairNumber) {
    /** For {@link #responderResources} and {@link #initiatorDepth}: the device's maximum. */
    public static final int DEVICE_MAXIMUM = 255;

    /** The largest {@link #retryCount}: a 3-bit field. */
    public static final int MAX_RETRY_COUNT = 7;

    /** The {@link #rnrRetryCount} that retries forever. */
    public static final int RNR_RETRY_FOREVER = 7;

    /** No message of any transport carries more: the length is one byte. */
    public static final int MAX_PRIVATE_DATA_BYTES = 255;

    /**
     * No private data, the device's maximum of reads, 7 retries and infinite RNR retries: the defaults of librdmacm,
     * and the only retry counts that survive packet loss.
     */
    public static final ConnectionParameters DEFAULT = new ConnectionParameters(
            new byte[0], DEVICE_MAXIMUM, DEVICE_MAXIMUM, false, MAX_RETRY_COUNT, RNR_RETRY_FOREVER, false, 0);

    /** Checks the ranges and copies the private data. */
    public ConnectionParameters {
        privateData = privateData.clone();
        requireRange("privateData.length", privateData.length, MAX_PRIVATE_DATA_BYTES);
        requireRange("responderResources", responderResources, DEVICE_MAXIMUM);
        requireRange("initiatorDepth", initiatorDepth, DEVICE_MAXIMUM);
        requireRange("retryCount", retryCount, MAX_RETRY_COUNT);
        requireRange("rnrRetryCount", rnrRetryCount, RNR_RETRY_FOREVER);
        requireRange("queuePairNumber", queuePairNumber, 0xffffff);
    }

    private static void requireRange(String name, int value, int max) {
        if (value < 0 || value > max) {
            throw new IllegalArgumentException(name + " is " + value + ", but must be 0 to " + max);
        }
    }

    /**
     * The private data.
     *
     * @return a copy. InfiniBand and RoCE pad what was sent with zeros to the full length
     */
    @Override
    public byte[] privateData() {
        return privateData.clone();
    }

    /**
     * These parameters with other private data.
     *
     * @param bytes copied
     * @return a new record
     */
    public ConnectionParameters withPrivateData(byte[] bytes) {
        return new ConnectionParameters(
                bytes,
                responderResources,
                initiatorDepth,
                flowControl,
                retryCount,
                rnrRetryCount,
                sharedReceiveQueue,
                queuePairNumber);
    }

    /**
     * These parameters with other numbers of reads and atomics.
     *
     * @param newResponderResources of the peer, served at a time
     * @param newInitiatorDepth of this side, under way at a time
     * @return a new record
     */
    public ConnectionParameters withReads(int newResponderResources, int newInitiatorDepth) {
        return new ConnectionParameters(
                privateData,
                newResponderResources,
                newInitiatorDepth,
                flowControl,
                retryCount,
                rnrRetryCount,
                sharedReceiveQueue,
                queuePairNumber);
    }

    /**
     * These parameters with other retry counts.
     *
     * @param newRetryCount without acknowledgement
     * @param newRnrRetryCount without a posted receive
     * @return a new record
     */
    public ConnectionParameters withRetries(int newRetryCount, int newRnrRetryCount) {
        return new ConnectionParameters(
                privateData,
                responderResources,
                initiatorDepth,
                flowControl,
                newRetryCount,
                newRnrRetryCount,
                sharedReceiveQueue,
                queuePairNumber);
    }

    /**
     * These parameters for a queue pair that was created separately from the id.
     *
     * @param newQueuePairNumber its number
     * @param newSharedReceiveQueue whether it takes its receives from a shared queue
     * @return a new record
     */
    public ConnectionParameters withQueuePair(int newQueuePairNumber, boolean newSharedReceiveQueue) {
        return new ConnectionParameters(
                privateData,
                responderResources,
                initiatorDepth,
                flowControl,
                retryCount,
                rnrRetryCount,
                newSharedReceiveQueue,
                newQueuePairNumber);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ConnectionParameters that
                && Arrays.equals(privateData, that.privateData)
                && responderResources == that.responderResources
                && initiatorDepth == that.initiatorDepth
                && flowControl == that.flowControl
                && retryCount == that.retryCount
                && rnrRetryCount == that.rnrRetryCount
                && sharedReceiveQueue == that.sharedReceiveQueue
                && queuePairNumber == that.queuePairNumber;
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(privateData) * 31
                + Integer.hashCode(responderResources << 24
                        ^ initiatorDepth << 16
                        ^ retryCount << 8
                        ^ rnrRetryCount
                        ^ queuePairNumber);
    }

    @Override
    public String toString() {
        return "ConnectionParameters[privateData=" + privateData.length + " bytes, responderResources="
                + responderResources + ", initiatorDepth=" + initiatorDepth + ", flowControl=" + flowControl
                + ", retryCount=" + retryCount + ", rnrRetryCount=" + rnrRetryCount + ", sharedReceiveQueue="
                + sharedReceiveQueue + ", queuePairNumber=" + queuePairNumber + "]";
    }

    /** Writes the C struct, and returns its address. */
    long write(Arena arena) {
        MemorySegment param = arena.allocate(RdmaConnParam.LAYOUT);
        long data = privateData.length == 0
                ? 0
                : arena.allocateFrom(CStruct.U8, privateData).address();
        param.set(CStruct.PTR, RdmaConnParam.PRIVATE_DATA, data);
        param.set(CStruct.U8, RdmaConnParam.PRIVATE_DATA_LEN, (byte) privateData.length);
        param.set(CStruct.U8, RdmaConnParam.RESPONDER_RESOURCES, (byte) responderResources);
        param.set(CStruct.U8, RdmaConnParam.INITIATOR_DEPTH, (byte) initiatorDepth);
        param.set(CStruct.U8, RdmaConnParam.FLOW_CONTROL, (byte) (flowControl ? 1 : 0));
        param.set(CStruct.U8, RdmaConnParam.RETRY_COUNT, (byte) retryCount);
        param.set(CStruct.U8, RdmaConnParam.RNR_RETRY_COUNT, (byte) rnrRetryCount);
        param.set(CStruct.U8, RdmaConnParam.SRQ, (byte) (sharedReceiveQueue ? 1 : 0));
        param.set(CStruct.U32, RdmaConnParam.QP_NUM, queuePairNumber);
        return param.address();
    }

    /** Copies the C struct. */
    static ConnectionParameters read(MemorySegment param) {
        return new ConnectionParameters(
                Pointers.copy(
                        param.get(CStruct.PTR, RdmaConnParam.PRIVATE_DATA),
                        readByte(param, RdmaConnParam.PRIVATE_DATA_LEN)),
                readByte(param, RdmaConnParam.RESPONDER_RESOURCES),
                readByte(param, RdmaConnParam.INITIATOR_DEPTH),
                readByte(param, RdmaConnParam.FLOW_CONTROL) != 0,
                Math.min(readByte(param, RdmaConnParam.RETRY_COUNT), MAX_RETRY_COUNT),
                Math.min(readByte(param, RdmaConnParam.RNR_RETRY_COUNT), RNR_RETRY_FOREVER),
                readByte(param, RdmaConnParam.SRQ) != 0,
                param.get(CStruct.U32, RdmaConnParam.QP_NUM) & 0xffffff);
    }

    private static int readByte(MemorySegment param, long offset) {
        return Byte.toUnsignedInt(param.get(CStruct.U8, offset));
    }
}
