package org.verbena.transport.spi;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.WorkStatus;

/**
 * Receives the events of one endpoint, always on its event loop's thread and never re-entrantly from one of the
 * endpoint's own methods. An exception from a callback ends this connection only, and becomes its cause.
 */
public interface EndpointHandler {

    /**
     * The queue pair exists: post the first receives now. Called at most once, before {@link #onConnected}.
     *
     * @param endpoint the endpoint
     */
    void onPrepared(Endpoint endpoint);

    /**
     * The connection is established. Called at most once.
     *
     * @param endpoint the endpoint
     * @param privateData the private data of the peer's request or reply, possibly padded with zeros; empty if none
     */
    void onConnected(Endpoint endpoint, byte[] privateData);

    /**
     * A send, write, read or atomic is done.
     *
     * @param endpoint the endpoint
     * @param workId the id that was posted
     * @param status {@link WorkStatus#SUCCESS}, or why not; then {@link #onDisconnected} follows with the first cause
     * @param lengthBytes the bytes moved; meaningful for reads and atomics that succeeded
     */
    void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes);

    /**
     * A receive was consumed or flushed.
     *
     * @param endpoint the endpoint
     * @param workId the id that was posted
     * @param status {@link WorkStatus#SUCCESS}, or why not
     * @param lengthBytes the bytes received; meaningful only for SUCCESS
     * @param flags a mask of {@link #WITH_IMMEDIATE}, {@link #WITH_INVALIDATE}, {@link #REMOTE_WRITE}
     * @param immediateData the peer's immediate data in host order ({@link #WITH_IMMEDIATE}), or the key that was
     *     invalidated ({@link #WITH_INVALIDATE})
     */
    void onReceiveCompletion(
            Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData);

    /**
     * A message has come, and lies whole in memory of the endpoint. Who takes it here copies what it needs, and the
     * message uses no receive and has no completion; {@link #onCompletionsHandled} follows. Messages come here and in
     * receives in the order in which they were sent. Providers that copy what they receive call this, for SENDs without
     * immediate data and without a key to invalidate, while the connection is established.
     *
     * <p>The bytes may be memory of the peer, which may change them at any time: read each of them once, and check the
     * copy.
     *
     * @param endpoint the endpoint
     * @param memory where the message lies; valid during the call
     * @param offsetBytes where it begins there
     * @param lengthBytes its length
     * @return whether it was taken; otherwise it goes into the next receive, as all messages do unless this is
     *     overridden
     */
    default boolean onMessage(Endpoint endpoint, MemorySegment memory, long offsetBytes, int lengthBytes) {
        return false;
    }

    /**
     * The end of a batch of completions, like Netty's channelReadComplete: time to flush.
     *
     * @param endpoint the endpoint
     */
    void onCompletionsHandled(Endpoint endpoint);

    /**
     * The reason for a peer whose connect request was accepted, when the endpoint fails for a local reason before the
     * peer got its answer. Providers call this before {@link #onDisconnected}.
     *
     * @param endpoint the endpoint, which accepts
     * @return private data of the rejection, up to {@link EndpointOptions#MAX_PRIVATE_DATA_BYTES}; empty unless
     *     overridden
     */
    default byte[] rejection(Endpoint endpoint) {
        return new byte[0];
    }

    /**
     * The end: called exactly once for each endpoint, after the completions of everything posted. After this call the
     * provider no longer touches the endpoint's memory.
     *
     * @param endpoint the endpoint
     * @param cause null after an orderly disconnect by either side; a {@link ConnectionException} if the connection was
     *     never established; otherwise the first failure
     */
    void onDisconnected(Endpoint endpoint, @Nullable Throwable cause);

    /** The message carried immediate data. */
    int WITH_IMMEDIATE = 1;

    /** The message invalidated a local key. */
    int WITH_INVALIDATE = 1 << 1;

    /**
     * The receive was consumed by a write with immediate data: {@code lengthBytes} were written elsewhere, not into its
     * buffers.
     */
    int REMOTE_WRITE = 1 << 2;
}
