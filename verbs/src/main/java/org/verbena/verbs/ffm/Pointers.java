package org.verbena.verbs.ffm;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Reads C's memory by address. The caller is responsible for the address: a wrong one ends the JVM. */
@SuppressWarnings("restricted") // looking at what C points to is what this class is for
public final class Pointers {
    /** Longer than any name or string that libibverbs returns. */
    private static final int MAX_STRING_BYTES = 4096;

    private static final boolean LITTLE_ENDIAN = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN;

    private Pointers() {}

    /**
     * Views memory.
     *
     * @param address of a live object
     * @param lengthBytes of it
     * @return a segment that checks bounds and nothing else
     */
    public static MemorySegment view(long address, long lengthBytes) {
        return MemorySegment.ofAddress(address).reinterpret(lengthBytes);
    }

    /**
     * A function pointer as the unbound handles take it.
     *
     * @param address of the function
     * @return the pointer
     */
    public static MemorySegment function(long address) {
        return MemorySegment.ofAddress(address);
    }

    /**
     * Reads a pointer or a {@code size_t}.
     *
     * @param address where it is
     * @return what is there
     */
    public static long readLong(long address) {
        return view(address, Long.BYTES).get(ValueLayout.JAVA_LONG, 0);
    }

    /**
     * Reads an int or an enum.
     *
     * @param address where it is
     * @return what is there
     */
    public static int readInt(long address) {
        return view(address, Integer.BYTES).get(ValueLayout.JAVA_INT, 0);
    }

    /**
     * Reads a string.
     *
     * @param address where it is, or 0
     * @return the string; empty for 0
     */
    public static String readString(long address) {
        return address == 0 ? "" : view(address, MAX_STRING_BYTES).getString(0);
    }

    /**
     * Reads a string out of a fixed array, which may be full and so without a terminator.
     *
     * @param struct what it is in
     * @param offsetBytes where it begins
     * @param capacityBytes of the array
     * @return the string
     */
    public static String readString(MemorySegment struct, long offsetBytes, int capacityBytes) {
        byte[] bytes = struct.asSlice(offsetBytes, capacityBytes).toArray(ValueLayout.JAVA_BYTE);
        int length = 0;
        while (length < bytes.length && bytes[length] != 0) {
            length++;
        }
        return new String(bytes, 0, length, java.nio.charset.StandardCharsets.UTF_8);
    }

    /**
     * Copies memory.
     *
     * @param address where it is, or 0
     * @param lengthBytes how much
     * @return what is there; nothing for 0
     */
    public static byte[] copy(long address, long lengthBytes) {
        return address == 0 ? new byte[0] : view(address, lengthBytes).toArray(ValueLayout.JAVA_BYTE);
    }

    /**
     * Converts between network and host order, either way.
     *
     * @param value in one of them
     * @return in the other
     */
    public static long bigEndian(long value) {
        return LITTLE_ENDIAN ? Long.reverseBytes(value) : value;
    }

    /**
     * Converts between network and host order, either way.
     *
     * @param value in one of them
     * @return in the other
     */
    public static int bigEndian(int value) {
        return LITTLE_ENDIAN ? Integer.reverseBytes(value) : value;
    }

    /**
     * Converts between network and host order, either way.
     *
     * @param value in one of them
     * @return in the other
     */
    public static short bigEndian(short value) {
        return LITTLE_ENDIAN ? Short.reverseBytes(value) : value;
    }
}
