package org.verbena.transport.spi;

/**
 * The capabilities of an endpoint. Depths and limits are those in force, not those requested.
 *
 * @param sendDepth work requests outstanding
 * @param receiveDepth receives posted
 * @param maxSges scatter/gather elements in one send, write or receive
 * @param maxReadSges scatter/gather elements in one read; 1 on iWARP
 * @param maxInlineBytes payload of an inline send or write; 0 if not supported
 * @param readDepth outstanding reads and atomics; beyond that the device queues them, and they do not fail
 * @param maxMessageBytes one work request's payload
 * @param atomics compare-and-swap and fetch-and-add on 8 aligned bytes
 * @param immediateData sends and writes with immediate data
 * @param sendWithInvalidate sends that invalidate a key of the peer
 * @param readSinkNeedsRemoteWrite whether memory that reads fill must be registered with REMOTE_WRITE as well, as iWARP
 *     adapters require (RFC 5040, 5.2)
 * @param receiveBufferBytes the default size of receives for this kind of device, as measured
 * @param connectionMemory whether memory can be registered for the peer of one connection only ({@link
 *     Endpoint#connectionMemory()}); otherwise a key opens its region to every peer of the device that knows it
 */
public record EndpointCapabilities(
        int sendDepth,
        int receiveDepth,
        int maxSges,
        int maxReadSges,
        int maxInlineBytes,
        int readDepth,
        long maxMessageBytes,
        boolean atomics,
        boolean immediateData,
        boolean sendWithInvalidate,
        boolean readSinkNeedsRemoteWrite,
        int receiveBufferBytes,
        boolean connectionMemory) {

    /**
     * The capabilities of an endpoint on a device that cannot register memory for one peer only.
     *
     * @param sendDepth work requests outstanding
     * @param receiveDepth receives posted
     * @param maxSges scatter/gather elements in one send, write or receive
     * @param maxReadSges scatter/gather elements in one read
     * @param maxInlineBytes payload of an inline send or write
     * @param readDepth reads and atomics outstanding towards the peer
     * @param maxMessageBytes one work request's payload
     * @param atomics compare-and-swap and fetch-and-add
     * @param immediateData sends and writes with immediate data
     * @param sendWithInvalidate sends that invalidate a key of the peer
     * @param readSinkNeedsRemoteWrite whether memory that reads fill must be registered with REMOTE_WRITE as well
     * @param receiveBufferBytes the size of receives that suits this kind of device
     */
    public EndpointCapabilities(
            int sendDepth,
            int receiveDepth,
            int maxSges,
            int maxReadSges,
            int maxInlineBytes,
            int readDepth,
            long maxMessageBytes,
            boolean atomics,
            boolean immediateData,
            boolean sendWithInvalidate,
            boolean readSinkNeedsRemoteWrite,
            int receiveBufferBytes) {
        this(
                sendDepth,
                receiveDepth,
                maxSges,
                maxReadSges,
                maxInlineBytes,
                readDepth,
                maxMessageBytes,
                atomics,
                immediateData,
                sendWithInvalidate,
                readSinkNeedsRemoteWrite,
                receiveBufferBytes,
                false);
    }
}
