package org.verbena.verbs.ffm;

import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.PaddingLayout;
import java.lang.foreign.SequenceLayout;
import java.lang.foreign.StructLayout;
import java.lang.foreign.UnionLayout;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * How C lays structs out on 64-bit Linux: each member at the next multiple of its alignment, the whole padded to the
 * largest. Layouts carry C's names, so that a test can ask a C compiler about every one of them.
 *
 * <p>Pointers and {@code size_t} are {@code long} here: the data path passes addresses, which costs no liveness check a
 * call.
 */
public final class CStruct {
    public static final ValueLayout.OfByte U8 = ValueLayout.JAVA_BYTE;
    public static final ValueLayout.OfShort U16 = ValueLayout.JAVA_SHORT;
    public static final ValueLayout.OfInt U32 = ValueLayout.JAVA_INT;
    public static final ValueLayout.OfInt I32 = ValueLayout.JAVA_INT;
    public static final ValueLayout.OfInt ENUM = ValueLayout.JAVA_INT;
    public static final ValueLayout.OfLong U64 = ValueLayout.JAVA_LONG;
    public static final ValueLayout.OfShort BE16 = U16.withOrder(ByteOrder.BIG_ENDIAN);
    public static final ValueLayout.OfInt BE32 = U32.withOrder(ByteOrder.BIG_ENDIAN);
    public static final ValueLayout.OfLong BE64 = U64.withOrder(ByteOrder.BIG_ENDIAN);
    public static final ValueLayout.OfLong SIZE = ValueLayout.JAVA_LONG;
    public static final ValueLayout.OfLong PTR = ValueLayout.JAVA_LONG;

    /** {@code pthread_mutex_t}: 48 bytes on AArch64, 40 on the other 64-bit ports of glibc; opaque either way. */
    public static final SequenceLayout PTHREAD_MUTEX =
            MemoryLayout.sequenceLayout("aarch64".equals(System.getProperty("os.arch")) ? 6 : 5, U64);

    /** {@code pthread_cond_t}: 48 bytes on every 64-bit port of glibc; opaque. */
    public static final SequenceLayout PTHREAD_COND = MemoryLayout.sequenceLayout(6, U64);

    private CStruct() {}

    /**
     * A struct with a tag.
     *
     * @param name C's tag
     * @param members with C's names; padding is put between them
     * @return the layout
     */
    public static StructLayout struct(String name, MemoryLayout... members) {
        return group(members).withName(name);
    }

    /**
     * A struct without a tag.
     *
     * @param members with C's names; padding is put between them
     * @return the layout
     */
    public static StructLayout group(MemoryLayout... members) {
        List<MemoryLayout> padded = new ArrayList<>();
        long end = 0;
        long alignment = 1;
        for (MemoryLayout member : members) {
            end = pad(padded, end, member.byteAlignment());
            padded.add(member);
            end += member.byteSize();
            alignment = Math.max(alignment, member.byteAlignment());
        }
        pad(padded, end, alignment);
        return MemoryLayout.structLayout(padded.toArray(MemoryLayout[]::new));
    }

    /**
     * A union without a tag.
     *
     * @param members with C's names
     * @return the layout, padded to its alignment
     */
    public static UnionLayout union(MemoryLayout... members) {
        long size = 0;
        long alignment = 1;
        for (MemoryLayout member : members) {
            size = Math.max(size, member.byteSize());
            alignment = Math.max(alignment, member.byteAlignment());
        }
        UnionLayout union = MemoryLayout.unionLayout(members);
        long padded = roundUp(size, alignment);
        if (padded == size) {
            return union;
        }
        MemoryLayout[] withPadding = java.util.Arrays.copyOf(members, members.length + 1);
        withPadding[members.length] = MemoryLayout.paddingLayout(padded);
        return MemoryLayout.unionLayout(withPadding);
    }

    /**
     * An array.
     *
     * @param count how many
     * @param element of what
     * @return the layout
     */
    public static SequenceLayout array(long count, MemoryLayout element) {
        return MemoryLayout.sequenceLayout(count, element);
    }

    /**
     * Where a member is, as C's offsetof: members of unions and structs without a name are members of what is around
     * them.
     *
     * @param layout a struct
     * @param path C's name, dotted for members of members
     * @return bytes from the start of the struct
     */
    public static long offset(GroupLayout layout, String path) {
        long offset = find(layout, path);
        if (offset < 0) {
            throw new IllegalArgumentException(layout + " has no member " + path);
        }
        return offset;
    }

    private static long find(GroupLayout group, String path) {
        int dot = path.indexOf('.');
        String head = dot < 0 ? path : path.substring(0, dot);
        long position = 0;
        for (MemoryLayout member : group.memberLayouts()) {
            long start = group instanceof UnionLayout ? 0 : position;
            String name = member.name().orElse("");
            if (name.isEmpty() && member instanceof GroupLayout anonymous) {
                long inner = find(anonymous, path);
                if (inner >= 0) {
                    return start + inner;
                }
            } else if (name.equals(head)) {
                if (dot < 0) {
                    return start;
                }
                return member instanceof GroupLayout named ? start + find(named, path.substring(dot + 1)) : -1;
            }
            position += member.byteSize();
        }
        return -1;
    }

    private static long pad(List<MemoryLayout> members, long end, long alignment) {
        long padded = roundUp(end, alignment);
        if (padded > end) {
            PaddingLayout gap = MemoryLayout.paddingLayout(padded - end);
            members.add(gap);
        }
        return padded;
    }

    private static long roundUp(long value, long alignment) {
        return (value + alignment - 1) / alignment * alignment;
    }
}
