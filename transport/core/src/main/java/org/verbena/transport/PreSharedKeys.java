package org.verbena.transport;

import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Secrets that both ends of a connection know, each with an id that is not secret. A client proves the first one; a
 * server accepts any of them, so that a key can be replaced: first add the new key to the servers, then change the
 * clients, then remove the old key from the servers.
 *
 * <p>A secret must come from a random generator, such as {@code openssl rand 32}: anyone who records a handshake can
 * test guesses at it offline. docs/protocol.md says what the proof covers, SECURITY.md what it does not protect.
 */
public final class PreSharedKeys {
    /** The longest id: a handshake must fit into the smallest receive that takes one. */
    public static final int MAX_ID_LENGTH = 64;

    /** The shortest secret: 128 bits cannot be found by trying. */
    public static final int MIN_SECRET_BYTES = 16;

    private static final String ALGORITHM = "HmacSHA256";

    /** Takes the place of an unknown key's secret. */
    private static final SecretKeySpec NOBODYS = randomKey();

    /** Ids go over the wire and into logs. */
    private static final Pattern ID = Pattern.compile("[A-Za-z0-9._:@/+-]{1," + MAX_ID_LENGTH + "}");

    private final String firstId;
    private final Map<String, SecretKeySpec> secrets;

    private PreSharedKeys(String firstId, Map<String, SecretKeySpec> secrets) {
        this.firstId = firstId;
        this.secrets = secrets;
    }

    /**
     * One key.
     *
     * @param id names the key: 1 to {@value #MAX_ID_LENGTH} letters, digits and {@code . _ : @ / + -}; it is sent
     *     unencrypted
     * @param secret {@value #MIN_SECRET_BYTES} bytes or more; copied
     * @return the key, for both ends
     * @throws IllegalArgumentException the id has other characters or the secret is too short
     */
    public static PreSharedKeys of(String id, byte[] secret) {
        return with(id, Map.of(), id, secret);
    }

    /**
     * These keys and one more, which a server accepts as well.
     *
     * @param id of the key
     * @param secret of the key; copied
     * @return another object
     * @throws IllegalArgumentException as {@link #of}, or there is a key with this id
     */
    public PreSharedKeys and(String id, byte[] secret) {
        return with(firstId, secrets, id, secret);
    }

    private static PreSharedKeys with(String firstId, Map<String, SecretKeySpec> known, String id, byte[] secret) {
        if (!isId(id)) {
            throw new IllegalArgumentException("the id of a pre-shared key has 1 to " + MAX_ID_LENGTH
                    + " letters, digits and . _ : @ / + -, unlike \"" + id + "\"");
        }
        if (secret.length < MIN_SECRET_BYTES) {
            throw new IllegalArgumentException("the secret of the pre-shared key " + id + " has " + secret.length
                    + " bytes: take " + MIN_SECRET_BYTES + " or more from a random generator");
        }
        Map<String, SecretKeySpec> more = new LinkedHashMap<>(known);
        if (more.put(id, new SecretKeySpec(secret, ALGORITHM)) != null) {
            throw new IllegalArgumentException("there is a pre-shared key " + id + " already");
        }
        return new PreSharedKeys(firstId, more);
    }

    /**
     * Whether a text can be the id of a key.
     *
     * @param text any text
     * @return whether {@link #of} takes it
     */
    public static boolean isId(String text) {
        return ID.matcher(text).matches();
    }

    private static SecretKeySpec randomKey() {
        byte[] secret = new byte[2 * MIN_SECRET_BYTES];
        new SecureRandom().nextBytes(secret);
        return new SecretKeySpec(secret, ALGORITHM);
    }

    /**
     * The message authentication code, HMAC-SHA-256, of some bytes. No method returns a secret itself. For an unknown
     * id it takes as long and returns a code that nobody can predict.
     *
     * @param id of the key
     * @param parts the bytes, in this order
     * @return 32 bytes
     */
    public byte[] mac(String id, byte[]... parts) {
        try {
            Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(secrets.getOrDefault(id, NOBODYS));
            for (byte[] part : parts) {
                mac.update(part);
            }
            return mac.doFinal();
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException("every JDK has " + ALGORITHM, impossible);
        }
    }

    /**
     * The key that a client proves.
     *
     * @return its id
     */
    public String firstId() {
        return firstId;
    }

    /**
     * Lists the ids.
     *
     * @return ids, without secrets
     */
    public List<String> ids() {
        return List.copyOf(secrets.keySet());
    }

    @Override
    public String toString() {
        return "PreSharedKeys" + ids();
    }
}
