package org.verbena.disni;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * Memory that DiSNI names by an address: of its direct buffers, which live through the call. Nobody can check such an
 * address, other than that it is not null.
 */
@SuppressWarnings("restricted") // looking at what the address points to is what this class is for
final class CallerMemory {
    /** {@code sizeof(struct sockaddr_in)}, all that DiSNI has room for. */
    static final int SOCKADDR_IN_BYTES = 16;

    private static final short AF_INET = 2;
    private static final ValueLayout.OfShort PORT = ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
    private static final long PORT_AT = 2;
    private static final long ADDRESS_AT = 4;

    /** {@code offsetof(struct ibv_send_wr, next)}, and of an {@code ibv_recv_wr}. */
    private static final long NEXT_AT = 8;

    /** {@code offsetof(struct ibv_send_wr, num_sge)}, and of an {@code ibv_recv_wr}. */
    private static final long ELEMENTS_AT = 24;

    /** For reading without an object for each read. */
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private CallerMemory() {}

    static MemorySegment at(long address, long bytes) throws IOException {
        if (address == 0 || bytes < 0) {
            throw new IOException(bytes + " bytes at address 0x" + Long.toHexString(address));
        }
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    /**
     * Checks how many elements each of a list of work requests has. Drivers compare the number as a signed one, and
     * copy as many.
     *
     * @param first address of the first
     * @param max what the queue takes
     */
    static void checkElements(long first, int max) throws IOException {
        if (first == 0) {
            throw new IOException("no memory: the call was freed");
        }
        long request = first;
        while (request != 0) {
            int elements = ALL.get(ValueLayout.JAVA_INT_UNALIGNED, request + ELEMENTS_AT);
            if (elements < 0 || elements > max) {
                throw new IOException("a work request of " + elements + " elements; the queue takes 0 to " + max);
            }
            request = ALL.get(ValueLayout.JAVA_LONG_UNALIGNED, request + NEXT_AT);
        }
    }

    static void writeInt(long address, int value) throws IOException {
        at(address, Integer.BYTES).set(ValueLayout.JAVA_INT_UNALIGNED, 0, value);
    }

    static byte[] readBytes(long address, int length) throws IOException {
        return length == 0 ? new byte[0] : at(address, length).toArray(ValueLayout.JAVA_BYTE);
    }

    static InetSocketAddress readSocketAddress(long address) throws IOException {
        MemorySegment struct = at(address, SOCKADDR_IN_BYTES);
        short family = struct.get(ValueLayout.JAVA_SHORT_UNALIGNED, 0);
        if (family != AF_INET) {
            throw new IOException("an address of family " + family + ", but DiSNI has IPv4 only");
        }
        try {
            return new InetSocketAddress(
                    InetAddress.getByAddress(struct.asSlice(ADDRESS_AT, 4).toArray(ValueLayout.JAVA_BYTE)),
                    Short.toUnsignedInt(struct.get(PORT, PORT_AT)));
        } catch (UnknownHostException wrongLength) {
            throw new AssertionError(wrongLength);
        }
    }

    /** Writes an address; zeros in the place of none, and of one that is not IPv4. */
    static void writeSocketAddress(long address, @Nullable InetSocketAddress value) throws IOException {
        MemorySegment struct = at(address, SOCKADDR_IN_BYTES).fill((byte) 0);
        if (value != null) {
            byte[] ip = value.getAddress().getAddress();
            struct.set(ValueLayout.JAVA_SHORT_UNALIGNED, 0, AF_INET);
            struct.set(PORT, PORT_AT, (short) value.getPort());
            if (ip.length == Integer.BYTES) {
                MemorySegment.copy(ip, 0, struct, ValueLayout.JAVA_BYTE, ADDRESS_AT, ip.length);
            }
        }
    }
}
