package org.verbena.transport.spi;

import org.jspecify.annotations.Nullable;

/**
 * Hears what happens to one endpoint, always on its event loop's thread and never re-entrantly from one of the endpoint's own
 * methods. What a callback throws ends this connection alone, with it as the cause.
 */
public interface EndpointHandler {

    /**
     * The queue pair exists: post the first receives now. Called once at most, before {@link #onConnected}.
     *
     * @param endpoint the endpoint
     */
    void onPrepared(Endpoint endpoint);

    /**
     * The connection is up. Called once at most.
     *
     * @param endpoint the endpoint
     * @param privateData what the peer sent along with its request or reply, possibly padded with zeros; empty if nothing
     */
    void onConnected(Endpoint endpoint, byte[] privateData);

    /**
     * A send, write, read or atomic is done.
     *
     * @param endpoint the endpoint
     * @param workId as posted
     * @param status {@link WorkStatus#SUCCESS}, or why not; then {@link #onDisconnected} follows with the first cause
     * @param lengthBytes the bytes moved; meaningful for reads and atomics that succeeded
     */
    void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes);

    /**
     * A receive was consumed or flushed.
     *
     * @param endpoint the endpoint
     * @param workId as posted
     * @param status {@link WorkStatus#SUCCESS}, or why not
     * @param lengthBytes the bytes received; meaningful for SUCCESS alone
     * @param flags a mask of {@link #WITH_IMMEDIATE}, {@link #WITH_INVALIDATE}, {@link #REMOTE_WRITE}
     * @param immediateData the peer's immediate data in host order ({@link #WITH_IMMEDIATE}), or the key that was invalidated
     *     ({@link #WITH_INVALIDATE})
     */
    void onReceiveCompletion(
            Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData);

    /**
     * The end of a batch of completions, as Netty's channelReadComplete: time to flush.
     *
     * @param endpoint the endpoint
     */
    void onCompletionsHandled(Endpoint endpoint);

    /**
     * What to tell a peer whose connect request was accepted, when the endpoint is given up before the peer was answered: this side lacks something. Asked
     * before {@link #onDisconnected}, by providers whose rejections can still be sent then.
     *
     * @param endpoint the endpoint, which accepts
     * @return private data of the rejection, up to {@link EndpointOptions#MAX_PRIVATE_DATA_BYTES}; none unless overridden
     */
    default byte[] rejection(Endpoint endpoint) {
        return new byte[0];
    }

    /**
     * The end: exactly once for each endpoint, after the completions of everything that was posted. After it the memory of this
     * endpoint is nobody's business but its owner's.
     *
     * @param endpoint the endpoint
     * @param cause null if this side or the peer disconnected in good order; a {@link ConnectionException} if the connection never
     *     came up; else the first thing that went wrong
     */
    void onDisconnected(Endpoint endpoint, @Nullable Throwable cause);

    /** The message carried immediate data. */
    int WITH_IMMEDIATE = 1;

    /** The message invalidated a key of this side. */
    int WITH_INVALIDATE = 1 << 1;

    /** The receive was consumed by a write with immediate data: {@code lengthBytes} were written elsewhere, not into its buffers. */
    int REMOTE_WRITE = 1 << 2;
}
