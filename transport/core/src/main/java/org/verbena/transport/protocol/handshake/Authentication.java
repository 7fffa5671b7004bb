package org.verbena.transport.protocol.handshake;

import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.wire.Wire;
import org.verbena.transport.spi.Secrets;

/**
 * The proof, by both ends, that they have the same pre-shared key. Pure: it sends nothing.
 *
 * <pre>{@code
 * initiator                                                    acceptor
 *   connect request: preamble, "I authenticate"  ------------>
 *         acceptance: preamble, "I authenticate", nonce a  <--
 *   HELLO, key id, nonce i,
 *     HMAC("initiator", acceptance, HELLO, id, nonce i)  ----->   right? then it is active
 *              HELLO_ACK,
 *                HMAC("acceptor", acceptance, HELLO,
 *   right?         id, nonce i, HELLO_ACK)  <-----------------
 *   then it is active
 * }</pre>
 *
 * <p>Each end's nonce is new for each connection, so that a recorded proof is useless; the proofs of the two ends
 * have different labels, so that neither can be reflected to its maker; and they cover everything that was agreed on.
 * Every part has a fixed length or is preceded by it.
 */
public final class Authentication {
    /** As long as the MAC: no two connections ever get the same nonce. */
    static final int NONCE_BYTES = 32;

    /** HMAC-SHA-256, whole. */
    public static final int PROOF_BYTES = 32;

    /** What an acceptance says: the preamble and a nonce. */
    public static final int ACCEPTANCE_BYTES = Wire.PREAMBLE_BYTES + NONCE_BYTES;

    /** A receive that takes the longest HELLO with a proof. */
    public static final int LEAST_RECEIVE_BYTES =
            Wire.HELLO_BYTES + 1 + PreSharedKeys.MAX_ID_LENGTH + NONCE_BYTES + PROOF_BYTES;

    private static final int SAID_BYTES = Wire.HELLO_BYTES - Wire.HEADER_BYTES;
    private static final byte[] INITIATOR = label("initiator");
    private static final byte[] ACCEPTOR = label("acceptor");
    private final Role role;
    private final PreSharedKeys keys;
    private final byte[] nonce = random(NONCE_BYTES);
    private byte[] acceptance = {};

    /** HELLO as the initiator sent it, without its proof. */
    private byte[] hello = {};

    /** The key that this connection uses, once it is known. */
    private String keyId = "";

    public Authentication(Role role, PreSharedKeys keys) {
        this.role = role;
        this.keys = keys;
        if (role == Role.INITIATOR) {
            keyId = keys.firstId();
        }
    }

    private static byte[] label(String role) {
        return ("Verbena pre-shared key 1, " + role + '\0').getBytes(StandardCharsets.US_ASCII);
    }

    private static byte[] random(int bytes) {
        byte[] drawn = new byte[bytes];
        Secrets.nextBytes(drawn);
        return drawn;
    }

    /**
     * What this end's connect request or acceptance says.
     *
     * @param preamble as without authentication
     * @return the preamble with the flag; with a nonce behind it if this end accepts
     */
    public byte[] privateData(byte[] preamble) {
        byte[] said = Arrays.copyOf(preamble, role == Role.ACCEPTOR ? ACCEPTANCE_BYTES : preamble.length);
        said[Wire.PREAMBLE_FLAGS] |= Wire.AUTHENTICATES;
        if (role == Role.ACCEPTOR) {
            System.arraycopy(nonce, 0, said, preamble.length, NONCE_BYTES);
            acceptance = said.clone();
        }
        return said;
    }

    /** Takes what the acceptance contained, padded or not; returns the violation, or null. */
    public @Nullable String takeAcceptance(byte[] privateData) {
        if (privateData.length < ACCEPTANCE_BYTES || (privateData[Wire.PREAMBLE_FLAGS] & Wire.AUTHENTICATES) == 0) {
            return "it has no pre-shared keys";
        }
        acceptance = Arrays.copyOf(privateData, ACCEPTANCE_BYTES);
        return null;
    }

    /**
     * What goes behind this end's HELLO or HELLO_ACK.
     *
     * @param from where the HELLO is
     * @param index of its first byte
     * @return the proof, and what it needs
     */
    public byte[] prove(ByteBuf from, int index) {
        byte[] said = bytes(from, index, SAID_BYTES);
        if (role == Role.ACCEPTOR) {
            return keys.mac(keyId, ACCEPTOR, acceptance, hello, said);
        }
        byte[] id = keys.firstId().getBytes(StandardCharsets.US_ASCII);
        byte[] behind = new byte[1 + id.length + NONCE_BYTES];
        behind[0] = (byte) id.length;
        System.arraycopy(id, 0, behind, 1, id.length);
        System.arraycopy(nonce, 0, behind, 1 + id.length, NONCE_BYTES);
        hello = joined(said, behind);
        return joined(behind, keys.mac(keyId, INITIATOR, acceptance, hello));
    }

    /**
     * Checks the peer's proof.
     *
     * @param frame the peer's HELLO or HELLO_ACK, header included
     * @param frameBytes its length
     * @return the violation, or null
     */
    public @Nullable String refusal(ByteBuf frame, int frameBytes) {
        int index = Wire.HEADER_BYTES;
        int behind = Wire.HELLO_BYTES;
        byte[] said = bytes(frame, index, SAID_BYTES);
        if (role == Role.INITIATOR) {
            if (frameBytes < behind + PROOF_BYTES) {
                return "it did not prove that it has the pre-shared key " + keys.firstId();
            }
            byte[] expected = keys.mac(keyId, ACCEPTOR, acceptance, hello, said);
            return MessageDigest.isEqual(expected, bytes(frame, behind, PROOF_BYTES))
                    ? null
                    : "its proof of the pre-shared key " + keys.firstId() + " is wrong: the secrets differ";
        }
        int idLength = frameBytes > behind ? frame.getUnsignedByte(behind) : 0;
        int provenBytes = SAID_BYTES + 1 + idLength + NONCE_BYTES;
        if (idLength == 0 || frameBytes < index + provenBytes + PROOF_BYTES) {
            return "it did not prove that it has a pre-shared key";
        }
        String id = frame.toString(behind + 1, idLength, StandardCharsets.US_ASCII);
        // The time that this takes does not reveal whether a key is known.
        hello = bytes(frame, index, provenBytes);
        byte[] expected = keys.mac(id, INITIATOR, acceptance, hello);
        boolean isRight = MessageDigest.isEqual(expected, bytes(frame, index + provenBytes, PROOF_BYTES));
        if (!keys.ids().contains(id)) {
            return PreSharedKeys.isId(id)
                    ? "this end has no pre-shared key " + id
                    : "its pre-shared key id is malformed";
        }
        if (!isRight) {
            return "its proof of the pre-shared key " + id + " is wrong: the secrets differ";
        }
        keyId = id;
        return null;
    }

    private static byte[] bytes(ByteBuf from, int index, int count) {
        byte[] copy = new byte[count];
        from.getBytes(index, copy);
        return copy;
    }

    private static byte[] joined(byte[] first, byte[] second) {
        byte[] both = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, both, first.length, second.length);
        return both;
    }
}
