package org.verbena.transport.spi;

/**
 * What an endpoint can do. Depths and limits are those in force, not those asked for.
 *
 * @param sendDepth work requests outstanding
 * @param receiveDepth receives posted
 * @param maxSges scatter/gather elements in one send, write or receive
 * @param maxReadSges scatter/gather elements in one read; 1 on iWARP
 * @param maxInlineBytes payload of an inline send or write; 0 without inline
 * @param readDepth reads and atomics outstanding towards the peer; more queue in the device, they do not fail
 * @param maxMessageBytes one work request's payload
 * @param atomics compare-and-swap and fetch-and-add on 8 aligned bytes
 * @param immediateData sends and writes with immediate data
 * @param sendWithInvalidate sends that invalidate a key of the peer
 * @param readSinkNeedsRemoteWrite whether memory that reads fill must be registered with REMOTE_WRITE as well, as iWARP adapters
 *     ask (RFC 5040, 5.2)
 * @param receiveBufferBytes the size of receives that suits this kind of device, as measured; the default where a program sets none
 * @param connectionMemory whether memory can be registered for the peer of one connection alone ({@link Endpoint#connectionMemory()}); without it a key
 *     opens its region to every peer of the device that has it
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
     * Of a device that cannot register memory for one peer alone.
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
