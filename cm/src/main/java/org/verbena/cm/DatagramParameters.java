package org.verbena.cm;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.verbena.cm.ffm.RdmaUdParam;
import org.verbena.verbs.AddressVector;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.ffm.Pointers;

/**
 * The parameters to send datagrams to the subject of an event: the peer that answered a look-up, or the group that was
 * joined.
 *
 * @param privateData of the request or its answer; copied
 * @param address of the peer or group, to create an address handle from
 * @param queuePairNumber to send to; 0xffffff for a group
 * @param queueKey to send with <p>Source: rdma_get_cm_event(3), ibv_create_ah(3)
 */
public record DatagramParameters(byte[] privateData, AddressVector address, int queuePairNumber, int queueKey) {

    /** The queue key of everything that librdmacm sets up for {@link PortSpace#UDP}. */
    public static final int UDP_QUEUE_KEY = 0x01234567;

    /** Copies the private data. */
    public DatagramParameters {
        privateData = privateData.clone();
    }

    /** Multicast events have the join's context in place of private data. */
    static DatagramParameters copy(MemorySegment ud, boolean multicast) {
        return new DatagramParameters(
                multicast
                        ? new byte[0]
                        : Pointers.copy(
                                ud.get(CStruct.PTR, RdmaUdParam.PRIVATE_DATA),
                                Byte.toUnsignedInt(ud.get(CStruct.U8, RdmaUdParam.PRIVATE_DATA_LEN))),
                AddressVector.read(ud, RdmaUdParam.AH_ATTR),
                ud.get(CStruct.U32, RdmaUdParam.QP_NUM) & 0xffffff,
                ud.get(CStruct.U32, RdmaUdParam.QKEY));
    }

    /**
     * The private data.
     *
     * @return a copy
     */
    @Override
    public byte[] privateData() {
        return privateData.clone();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof DatagramParameters that
                && Arrays.equals(privateData, that.privateData)
                && address.equals(that.address)
                && queuePairNumber == that.queuePairNumber
                && queueKey == that.queueKey;
    }

    @Override
    public int hashCode() {
        return (address.hashCode() * 31 + queuePairNumber) * 31 + queueKey;
    }

    @Override
    public String toString() {
        return "DatagramParameters[" + address + ", queuePairNumber=" + queuePairNumber + ", queueKey=0x"
                + Integer.toHexString(queueKey) + ", privateData=" + privateData.length + " bytes]";
    }
}
