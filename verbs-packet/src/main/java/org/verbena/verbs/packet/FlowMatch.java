package org.verbena.verbs.packet;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.util.Arrays;
import java.util.HexFormat;
import org.verbena.verbs.ffm.Ranges;
import org.verbena.verbs.packet.ffm.IbvFlowIpv4ExtFilter;

/**
 * A header that packets must have. Fields that are not set match any value. Immutable: each method returns a new
 * object.
 *
 * <pre>{@code
 * FlowMatch.of(FlowHeader.IPV4).prefix(FlowField.IPV4_SOURCE, InetAddress.getByName("10.0.0.0"), 8);
 * FlowMatch.of(FlowHeader.UDP).field(FlowField.DESTINATION_PORT, 4791);
 * }</pre>
 *
 * <p>Numbers are in host order; they are passed to the device in network order. Most devices match a field as a whole
 * or not at all, and refuse other masks. An IPv4 header of which more than addresses matter goes to the device as
 * {@code IBV_FLOW_SPEC_IPV4_EXT}.
 *
 * <p>Source: ibv_create_flow(3)
 */
public final class FlowMatch extends FlowSpec {
    private final FlowHeader header;
    private final byte[] value;
    private final byte[] mask;
    private final boolean inner;

    private FlowMatch(FlowHeader header, byte[] value, byte[] mask, boolean inner) {
        this.header = header;
        this.value = value;
        this.mask = mask;
        this.inner = inner;
    }

    /**
     * Matches any packet with a header.
     *
     * @param header the header
     * @return the match
     */
    public static FlowMatch of(FlowHeader header) {
        int bytes = (int) header.type().filterBytes();
        return new FlowMatch(header, new byte[bytes], new byte[bytes], false);
    }

    /**
     * The same header inside of a tunnel.
     *
     * @return the match
     */
    public FlowMatch inner() {
        return new FlowMatch(header, value, mask, true);
    }

    /**
     * Sets a field.
     *
     * @param field of this header
     * @param fieldValue the value to match
     * @return the match
     * @throws IllegalArgumentException another header has the field, or the value has more bits
     */
    public FlowMatch field(FlowField field, long fieldValue) {
        return field(field, fieldValue, most(field));
    }

    /**
     * Sets some bits of a field.
     *
     * @param field of this header
     * @param fieldValue the value to match
     * @param fieldMask which of its bits matter
     * @return the match
     * @throws IllegalArgumentException another header has the field, or the value or the mask has more bits
     */
    public FlowMatch field(FlowField field, long fieldValue, long fieldMask) {
        long most = most(field);
        if (fieldValue < 0 || fieldValue > most || fieldMask < 0 || fieldMask > most) {
            throw new IllegalArgumentException(field + " 0x" + Long.toHexString(fieldValue) + " with mask 0x"
                    + Long.toHexString(fieldMask) + " has more than the " + field.bits() + " bits of the field");
        }
        return field(field, field.toBytes(fieldValue), field.toBytes(fieldMask));
    }

    private static long most(FlowField field) {
        if (field.bits() >= Long.SIZE) {
            throw new IllegalArgumentException(field + " has " + field.bytes() + " bytes: give them as an array");
        }
        return (1L << field.bits()) - 1;
    }

    /**
     * Sets a field.
     *
     * @param field of this header
     * @param fieldValue the value to match, as many bytes as the field has, in network order
     * @return the match
     * @throws IllegalArgumentException another header has the field, or it has another length
     */
    public FlowMatch field(FlowField field, byte[] fieldValue) {
        byte[] whole = new byte[field.bytes()];
        Arrays.fill(whole, (byte) -1);
        return field(field, fieldValue, whole);
    }

    /**
     * Sets some bits of a field.
     *
     * @param field of this header
     * @param fieldValue the value to match, as many bytes as the field has, in network order
     * @param fieldMask which of its bits matter
     * @return the match
     * @throws IllegalArgumentException another header has the field, or it has another length
     */
    public FlowMatch field(FlowField field, byte[] fieldValue, byte[] fieldMask) {
        if (!field.isOf(header)) {
            throw new IllegalArgumentException(field + " is no field of " + header);
        }
        if (fieldValue.length != field.bytes() || fieldMask.length != field.bytes()) {
            throw new IllegalArgumentException(field + " and its mask have " + field.bytes() + " bytes each, not "
                    + fieldValue.length + " and " + fieldMask.length);
        }
        byte[] newValue = value.clone();
        byte[] newMask = mask.clone();
        for (int i = 0; i < field.bytes(); i++) {
            newValue[field.offset() + i] = (byte) (fieldValue[i] & fieldMask[i]);
            newMask[field.offset() + i] = fieldMask[i];
        }
        return new FlowMatch(header, newValue, newMask, inner);
    }

    /**
     * Sets the prefix of an IP address.
     *
     * @param field of this header, the address of a host or network
     * @param address of the same version of IP
     * @param prefixBits how many of its bits matter, 0 to 32 or 128
     * @return the match
     * @throws IllegalArgumentException another header has the field, or it has another length
     */
    public FlowMatch prefix(FlowField field, InetAddress address, int prefixBits) {
        byte[] bytes = address.getAddress();
        Ranges.check("prefixBits", prefixBits, 0, bytes.length * Byte.SIZE);
        byte[] prefix = new byte[bytes.length];
        for (int bit = 0; bit < prefixBits; bit++) {
            prefix[bit / Byte.SIZE] |= (byte) (0x80 >>> bit % Byte.SIZE);
        }
        return field(field, bytes, prefix);
    }

    /** Not all devices take the longer struct of IPv4, so it is used only where its fields matter. */
    private FlowSpecType kind() {
        return header == FlowHeader.IPV4 && !matchesFrom((int) IbvFlowIpv4ExtFilter.PROTO)
                ? FlowSpecType.IPV4
                : header.type();
    }

    /** Whether bytes of the filter matter that come at an offset or behind. */
    private boolean matchesFrom(int offset) {
        for (int i = offset; i < mask.length; i++) {
            if (mask[i] != 0) {
                return true;
            }
        }
        return false;
    }

    /**
     * Writes the value without the mask, as a header that goes around packets.
     *
     * @param filter memory of {@link #filterBytes()}
     */
    void writeValue(MemorySegment filter) {
        MemorySegment.copy(value, 0, filter, ValueLayout.JAVA_BYTE, 0, (int) filterBytes());
    }

    /** How long C's filter is. */
    long filterBytes() {
        return kind().filterBytes();
    }

    @Override
    long sizeBytes() {
        return kind().sizeBytes();
    }

    @Override
    int type() {
        return kind().value() | (inner ? FlowSpecType.INNER.value() : 0);
    }

    @Override
    void writeBody(MemorySegment memory) {
        FlowSpecType kind = kind();
        MemorySegment.copy(value, 0, memory, ValueLayout.JAVA_BYTE, kind.valueAt(), (int) kind.filterBytes());
        MemorySegment.copy(mask, 0, memory, ValueLayout.JAVA_BYTE, kind.maskAt(), (int) kind.filterBytes());
    }

    @Override
    public String toString() {
        HexFormat hex = HexFormat.of();
        return (inner ? "inner " : "") + kind() + " " + hex.formatHex(value) + "/" + hex.formatHex(mask);
    }
}
