package org.verbena.verbs.packet;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.verbena.verbs.ffm.CStruct;
import org.verbena.verbs.packet.ffm.IbUverbsFlowActionEspKeymatAesGcm;

/**
 * A key for AES-GCM, with initialization vectors that count up. It does not print.
 *
 * <p>Source: ibv_flow_action_esp(3), RFC 4106
 */
public final class EspKey {
    private static final int IV_BYTES = 8;
    private static final int SALT_BYTES = 4;
    private static final int AES_128_BYTES = 16;
    private static final int AES_192_BYTES = 24;
    private static final int AES_256_BYTES = 32;

    private final byte[] key;
    private final byte[] salt;
    private final byte[] firstVector;
    private final int checkBytes;

    /**
     * Copies a key.
     *
     * @param key 16, 24 or 32 bytes
     * @param salt 4 bytes that both sides know
     * @param firstVector 8 bytes, the first initialization vector
     * @param checkBytes how long the integrity check value is: 8, 12 or 16
     */
    public EspKey(byte[] key, byte[] salt, byte[] firstVector, int checkBytes) {
        if (key.length != AES_128_BYTES && key.length != AES_192_BYTES && key.length != AES_256_BYTES) {
            throw new IllegalArgumentException("an AES key has 16, 24 or 32 bytes, not " + key.length);
        }
        if (salt.length != SALT_BYTES || firstVector.length != IV_BYTES) {
            throw new IllegalArgumentException("the salt has " + SALT_BYTES + " bytes and the first vector " + IV_BYTES
                    + ", not " + salt.length + " and " + firstVector.length);
        }
        if (checkBytes != 8 && checkBytes != 12 && checkBytes != 16) {
            throw new IllegalArgumentException("an integrity check value has 8, 12 or 16 bytes, not " + checkBytes);
        }
        this.key = key.clone();
        this.salt = salt.clone();
        this.firstVector = firstVector.clone();
        this.checkBytes = checkBytes;
    }

    /**
     * Writes C's struct, whose bytes are in the order given here.
     *
     * @param struct zeroed
     */
    void write(MemorySegment struct) {
        MemorySegment.copy(
                firstVector, 0, struct, ValueLayout.JAVA_BYTE, IbUverbsFlowActionEspKeymatAesGcm.IV, IV_BYTES);
        MemorySegment.copy(salt, 0, struct, ValueLayout.JAVA_BYTE, IbUverbsFlowActionEspKeymatAesGcm.SALT, SALT_BYTES);
        struct.set(CStruct.U32, IbUverbsFlowActionEspKeymatAesGcm.ICV_LEN, checkBytes);
        struct.set(CStruct.U32, IbUverbsFlowActionEspKeymatAesGcm.KEY_LEN, key.length);
        MemorySegment.copy(
                key, 0, struct, ValueLayout.JAVA_BYTE, IbUverbsFlowActionEspKeymatAesGcm.AES_KEY, key.length);
    }

    @Override
    public String toString() {
        return "AES-GCM key of " + key.length * Byte.SIZE + " bits";
    }
}
