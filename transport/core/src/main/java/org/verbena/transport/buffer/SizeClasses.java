package org.verbena.transport.buffer;

/**
 * The block sizes of a pool: every 64 bytes up to 512, then four steps to each power of two. A block is therefore at
 * most a quarter larger than what was asked for (beyond 512 bytes), and always a multiple of 64: blocks never share a
 * cache line, and atomics are aligned.
 *
 * <pre>{@code
 * index   0    1  ...   7 |   8    9   10    11 |   12   13   14    15 | ...
 * bytes  64  128  ... 512 | 640  768  896  1024 | 1280 1536 1792  2048 | ...
 * }</pre>
 */
final class SizeClasses {
    /** The smallest block and the alignment of all: a cache line. */
    static final int QUANTUM_BYTES = 64;

    private static final int QUANTUM_SHIFT = 6;
    private static final int LINEAR_CLASSES = 8;
    private static final int LINEAR_LIMIT_SHIFT = 9;

    private SizeClasses() {}

    /**
     * The class whose blocks fit.
     *
     * @param bytes 0 or more
     */
    static int indexOf(int bytes) {
        if (bytes <= 1 << LINEAR_LIMIT_SHIFT) {
            return bytes == 0 ? 0 : (bytes - 1) >> QUANTUM_SHIFT;
        }
        int last = bytes - 1;
        int doubling = 31 - Integer.numberOfLeadingZeros(last);
        return LINEAR_CLASSES + (doubling - LINEAR_LIMIT_SHIFT) * 4 + ((last >> (doubling - 2)) & 3);
    }

    /** The length of a class's blocks. */
    static int bytesOf(int index) {
        if (index < LINEAR_CLASSES) {
            return (index + 1) << QUANTUM_SHIFT;
        }
        int doubling = LINEAR_LIMIT_SHIFT + (index - LINEAR_CLASSES) / 4;
        return (1 << doubling) + (((index - LINEAR_CLASSES) % 4 + 1) << (doubling - 2));
    }
}
