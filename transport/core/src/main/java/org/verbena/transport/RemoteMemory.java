package org.verbena.transport;

import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import java.util.EnumSet;
import java.util.Set;

/**
 * A token for memory of the peer: its address, length, key and rights. The owner creates it with {@link
 * RegisteredMemory#remote()} and sends it to the peer; anyone who has it can use the memory, over a connection to its
 * owner's device, until the owner closes the region. The rights in the token are checked before anything is posted; the
 * owner's adapter checks the rights of the region.
 *
 * <pre>{@code
 *  0      2         3        4     8         16       24
 * | magic | version | rights | key | address | length |     big endian
 * }</pre>
 *
 * @param address the virtual address in the peer's process
 * @param lengthBytes its length, 1 or more
 * @param key rkey, or STag
 * @param access the rights that the peer grants
 */
public record RemoteMemory(long address, long lengthBytes, int key, Set<MemoryDomain.Access> access) {

    /** The length of an encoded token, in bytes. */
    public static final int ENCODED_BYTES = 24;

    /** {@code VM}, to recognise a token. */
    private static final short MAGIC = 0x564d;

    private static final byte VERSION = 1;

    /** Bits on the wire; never the ordinals. */
    private static final int REMOTE_WRITE_BIT = 1;

    private static final int REMOTE_READ_BIT = 1 << 1;
    private static final int REMOTE_ATOMIC_BIT = 1 << 2;
    private static final int ALL_BITS = REMOTE_WRITE_BIT | REMOTE_READ_BIT | REMOTE_ATOMIC_BIT;

    /** Checks ranges, and keeps only the rights that a peer can use. */
    public RemoteMemory {
        if (lengthBytes < 1) {
            throw new IllegalArgumentException("lengthBytes " + lengthBytes + " is below 1");
        }
        EnumSet<MemoryDomain.Access> remote = EnumSet.noneOf(MemoryDomain.Access.class);
        remote.addAll(access);
        remote.remove(MemoryDomain.Access.LOCAL_WRITE);
        access = Set.copyOf(remote);
    }

    /**
     * A part of it.
     *
     * @param offsetBytes where the part begins
     * @param partLengthBytes its length, 1 or more
     * @return a token for that part only
     * @throws IndexOutOfBoundsException outside this token
     */
    public RemoteMemory slice(long offsetBytes, long partLengthBytes) {
        checkBounds(offsetBytes, partLengthBytes);
        return new RemoteMemory(address + offsetBytes, partLengthBytes, key, access);
    }

    /**
     * Checks that a range is within the memory.
     *
     * @param offsetBytes where the range begins
     * @param rangeLengthBytes its length
     * @throws IndexOutOfBoundsException if it is not
     */
    public void checkBounds(long offsetBytes, long rangeLengthBytes) {
        if (offsetBytes < 0 || rangeLengthBytes < 0 || offsetBytes > lengthBytes - rangeLengthBytes) {
            throw new IndexOutOfBoundsException("offset " + offsetBytes + " and length " + rangeLengthBytes
                    + " are outside remote memory of " + lengthBytes + " bytes");
        }
    }

    /**
     * Checks that the token grants a right.
     *
     * @param right the right that is needed
     * @throws IllegalArgumentException if the token lacks it
     */
    public void checkAccess(MemoryDomain.Access right) {
        if (!access.contains(right)) {
            throw new IllegalArgumentException("the remote memory allows " + access + ", not " + right
                    + ": its owner has to register it with " + right);
        }
    }

    /**
     * Encodes the token.
     *
     * @param out gets {@link #ENCODED_BYTES} bytes appended
     */
    public void encode(ByteBuf out) {
        out.writeShort(MAGIC);
        out.writeByte(VERSION);
        out.writeByte(rights());
        out.writeInt(key);
        out.writeLong(address);
        out.writeLong(lengthBytes);
    }

    /**
     * Encodes the token.
     *
     * @return {@link #ENCODED_BYTES} bytes
     */
    public byte[] encode() {
        return ByteBuffer.allocate(ENCODED_BYTES)
                .putShort(MAGIC)
                .put(VERSION)
                .put((byte) rights())
                .putInt(key)
                .putLong(address)
                .putLong(lengthBytes)
                .array();
    }

    /**
     * Decodes a token.
     *
     * @param in {@link #ENCODED_BYTES} bytes are read from it
     * @return the token
     * @throws IllegalArgumentException the bytes are not a token
     */
    public static RemoteMemory decode(ByteBuf in) {
        if (in.readableBytes() < ENCODED_BYTES) {
            throw new IllegalArgumentException(
                    "a memory token has " + ENCODED_BYTES + " bytes; there are " + in.readableBytes());
        }
        byte[] bytes = new byte[ENCODED_BYTES];
        in.readBytes(bytes);
        return decode(bytes);
    }

    /**
     * Decodes a token.
     *
     * @param bytes {@link #ENCODED_BYTES} bytes
     * @return the token
     * @throws IllegalArgumentException the bytes are not a token
     */
    public static RemoteMemory decode(byte[] bytes) {
        if (bytes.length != ENCODED_BYTES) {
            throw new IllegalArgumentException(
                    "a memory token has " + ENCODED_BYTES + " bytes; there are " + bytes.length);
        }
        ByteBuffer in = ByteBuffer.wrap(bytes);
        short magic = in.getShort();
        byte version = in.get();
        int rights = in.get();
        if (magic != MAGIC || version != VERSION || (rights & ~ALL_BITS) != 0) {
            throw new IllegalArgumentException("these bytes are not a memory token of version " + VERSION
                    + ": magic 0x" + Integer.toHexString(magic & 0xffff) + ", version " + version + ", rights 0x"
                    + Integer.toHexString(rights & 0xff));
        }
        int key = in.getInt();
        long address = in.getLong();
        long lengthBytes = in.getLong();
        EnumSet<MemoryDomain.Access> access = EnumSet.noneOf(MemoryDomain.Access.class);
        if ((rights & REMOTE_WRITE_BIT) != 0) {
            access.add(MemoryDomain.Access.REMOTE_WRITE);
        }
        if ((rights & REMOTE_READ_BIT) != 0) {
            access.add(MemoryDomain.Access.REMOTE_READ);
        }
        if ((rights & REMOTE_ATOMIC_BIT) != 0) {
            access.add(MemoryDomain.Access.REMOTE_ATOMIC);
        }
        return new RemoteMemory(address, lengthBytes, key, access);
    }

    private int rights() {
        return (access.contains(MemoryDomain.Access.REMOTE_WRITE) ? REMOTE_WRITE_BIT : 0)
                | (access.contains(MemoryDomain.Access.REMOTE_READ) ? REMOTE_READ_BIT : 0)
                | (access.contains(MemoryDomain.Access.REMOTE_ATOMIC) ? REMOTE_ATOMIC_BIT : 0);
    }

    @Override
    public String toString() {
        return "RemoteMemory[0x" + Long.toHexString(address) + ", " + lengthBytes + " bytes, key 0x"
                + Integer.toHexString(key) + ", " + access + "]";
    }
}
