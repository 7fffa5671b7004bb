package org.verbena.api.client;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.verbena.api.service.Metadata;

/**
 * How a client sends one request. Immutable; start from {@link #DEFAULTS}, which leaves all to the client's builder.
 *
 * <pre>{@code
 * RequestOptions careful = RequestOptions.DEFAULTS.withTimeout(Duration.ofSeconds(1)).withIdempotent(true);
 * byte[] reply = client.request(message, careful).get();
 * }</pre>
 */
public final class RequestOptions {
    /** As the builder says, and to any server. */
    public static final RequestOptions DEFAULTS = new RequestOptions(null, null, null, null, Metadata.EMPTY);

    private final @Nullable Duration timeout;
    private final @Nullable Boolean idempotent;
    private final @Nullable Duration hedgeAfter;
    private final @Nullable Long keyHash;
    private final Metadata metadata;

    private RequestOptions(
            @Nullable Duration timeout,
            @Nullable Boolean idempotent,
            @Nullable Duration hedgeAfter,
            @Nullable Long keyHash,
            Metadata metadata) {
        this.timeout = timeout;
        this.idempotent = idempotent;
        this.hedgeAfter = hedgeAfter;
        this.keyHash = keyHash;
        this.metadata = metadata;
    }

    private static Duration positive(String name, Duration value) {
        Objects.requireNonNull(value, () -> name + " is null");
        if (!value.isPositive()) {
            throw new IllegalArgumentException(name + " " + value + " is not positive");
        }
        return value;
    }

    /**
     * The same with a timeout: how long the reply may take, all attempts together.
     *
     * @param value more than zero
     * @return changed options
     */
    public RequestOptions withTimeout(Duration value) {
        return new RequestOptions(positive("timeout", value), idempotent, hedgeAfter, keyHash, metadata);
    }

    /**
     * The same, saying whether the request may be handled more than once without harm. If so, it is sent again when its
     * connection is lost: within its time, the first time in any case, and further times as long as retries do not
     * exceed a tenth of the client's replies. If not, it is sent once, whatever the client does with other requests.
     *
     * @param value true if it may
     * @return changed options
     */
    public RequestOptions withIdempotent(boolean value) {
        return new RequestOptions(timeout, value, hedgeAfter, keyHash, metadata);
    }

    /**
     * The same, and if there is no reply within that time, the request is sent on another connection as well, and the
     * first reply is taken. That makes the request {@linkplain #withIdempotent idempotent}. It is sent twice only if
     * the client has another connection, and as long as such requests do not exceed a tenth of its replies.
     *
     * @param delay more than zero
     * @return changed options
     */
    public RequestOptions withHedgeAfter(Duration delay) {
        return new RequestOptions(timeout, true, positive("the delay", delay), keyHash, metadata);
    }

    /**
     * The same for a key: requests of one key go to the same server as long as the client's servers stay the same. When
     * a server comes or goes, only the keys that it has or gets move. Other clients with the same servers choose the
     * same one.
     *
     * @param key any text
     * @return changed options
     */
    public RequestOptions withKey(String key) {
        return withKey(key.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * As {@link #withKey(String)}.
     *
     * @param key any bytes
     * @return changed options
     */
    public RequestOptions withKey(byte[] key) {
        return new RequestOptions(timeout, idempotent, hedgeAfter, hash(key), metadata);
    }

    /**
     * The same with metadata, which the server's handler sees, in place of what there was. It counts against {@code
     * MAX_MESSAGE_BYTES} and the client's limits as the message does.
     *
     * @param value what goes with the request
     * @return changed options
     */
    public RequestOptions withMetadata(Metadata value) {
        return new RequestOptions(
                timeout, idempotent, hedgeAfter, keyHash, Objects.requireNonNull(value, "the metadata is null"));
    }

    /** FNV-1a: short, the same everywhere, and mixed further where it is used. */
    private static long hash(byte[] key) {
        long hash = 0xcbf29ce484222325L;
        for (byte each : key) {
            hash = (hash ^ (each & 0xff)) * 0x100000001b3L;
        }
        return hash;
    }

    /**
     * Returns the timeout.
     *
     * @return null for the client's
     */
    public @Nullable Duration timeout() {
        return timeout;
    }

    /**
     * Returns whether the request may be handled more than once.
     *
     * @return null for what the client's builder says
     */
    public @Nullable Boolean idempotent() {
        return idempotent;
    }

    /**
     * Returns after which time without a reply the request is sent a second time.
     *
     * @return null for what the client's builder says
     */
    public @Nullable Duration hedgeAfter() {
        return hedgeAfter;
    }

    /**
     * Returns what the server is chosen by.
     *
     * @return a number that stands for the key; null if there is none
     */
    public @Nullable Long keyHash() {
        return keyHash;
    }

    /**
     * Returns what goes with the request.
     *
     * @return may be empty
     */
    public Metadata metadata() {
        return metadata;
    }
}
