package org.verbena.transport;

/**
 * The capabilities of an endpoint. Depths and limits are those in force, not those requested.
 *
 * @param sendDepth work requests outstanding
 * @param receiveDepth receives posted
 * @param maxSges scatter/gather elements in one send or write
 * @param maxReceiveSges scatter/gather elements in one receive
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
 * @param connectionMemory whether memory can be registered for the peer of one connection only ({@code
 *     Endpoint.connectionMemory()}); otherwise a key opens its region to every peer of the device that knows it
 * @param reportsPeerEnd whether the endpoint reports the end of its peer by itself; false if queue pairs were connected
 *     by hand: then only failing work shows that the peer is gone
 */
public record EndpointCapabilities(
        int sendDepth,
        int receiveDepth,
        int maxSges,
        int maxReceiveSges,
        int maxReadSges,
        int maxInlineBytes,
        int readDepth,
        long maxMessageBytes,
        boolean atomics,
        boolean immediateData,
        boolean sendWithInvalidate,
        boolean readSinkNeedsRemoteWrite,
        int receiveBufferBytes,
        boolean connectionMemory,
        boolean reportsPeerEnd) {

    /**
     * Creates a builder that starts from these capabilities.
     *
     * @return a new builder
     */
    public Builder toBuilder() {
        return new Builder()
                .sendDepth(sendDepth)
                .receiveDepth(receiveDepth)
                .maxSges(maxSges)
                .maxReceiveSges(maxReceiveSges)
                .maxReadSges(maxReadSges)
                .maxInlineBytes(maxInlineBytes)
                .readDepth(readDepth)
                .maxMessageBytes(maxMessageBytes)
                .atomics(atomics)
                .immediateData(immediateData)
                .sendWithInvalidate(sendWithInvalidate)
                .readSinkNeedsRemoteWrite(readSinkNeedsRemoteWrite)
                .receiveBufferBytes(receiveBufferBytes)
                .connectionMemory(connectionMemory)
                .reportsPeerEnd(reportsPeerEnd);
    }

    /** Builds capabilities, starting from those of a minimal device. */
    public static final class Builder {
        private static final int AS_FOR_SENDS = 0;

        private int sendDepth = 1;
        private int receiveDepth = 1;
        private int maxSges = 1;
        private int maxReceiveSges = AS_FOR_SENDS;
        private int maxReadSges = 1;
        private int maxInlineBytes = 0;
        private int readDepth = 0;
        private long maxMessageBytes = Integer.MAX_VALUE;
        private boolean atomics = false;
        private boolean immediateData = false;
        private boolean sendWithInvalidate = false;
        private boolean readSinkNeedsRemoteWrite = false;
        private int receiveBufferBytes = 16 << 10;
        private boolean connectionMemory = false;
        private boolean reportsPeerEnd = true;

        /**
         * Starts with depths of 1, one element, messages of up to 2 GiB, receives of 16 KiB, and no features. The
         * peer's end is reported.
         */
        public Builder() {}

        /**
         * Sets {@link EndpointCapabilities#sendDepth()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder sendDepth(int value) {
            sendDepth = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#receiveDepth()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder receiveDepth(int value) {
            receiveDepth = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#maxSges()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder maxSges(int value) {
            maxSges = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#maxReceiveSges()}; otherwise it is as
         * {@link EndpointCapabilities#maxSges()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder maxReceiveSges(int value) {
            maxReceiveSges = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#maxReadSges()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder maxReadSges(int value) {
            maxReadSges = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#maxInlineBytes()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder maxInlineBytes(int value) {
            maxInlineBytes = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#readDepth()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder readDepth(int value) {
            readDepth = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#maxMessageBytes()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder maxMessageBytes(long value) {
            maxMessageBytes = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#atomics()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder atomics(boolean value) {
            atomics = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#immediateData()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder immediateData(boolean value) {
            immediateData = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#sendWithInvalidate()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder sendWithInvalidate(boolean value) {
            sendWithInvalidate = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#readSinkNeedsRemoteWrite()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder readSinkNeedsRemoteWrite(boolean value) {
            readSinkNeedsRemoteWrite = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#receiveBufferBytes()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder receiveBufferBytes(int value) {
            receiveBufferBytes = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#connectionMemory()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder connectionMemory(boolean value) {
            connectionMemory = value;
            return this;
        }

        /**
         * Sets {@link EndpointCapabilities#reportsPeerEnd()}.
         *
         * @param value the new value
         * @return this
         */
        public Builder reportsPeerEnd(boolean value) {
            reportsPeerEnd = value;
            return this;
        }

        /**
         * Creates the record.
         *
         * @return the capabilities that were set
         */
        public EndpointCapabilities build() {
            return new EndpointCapabilities(
                    sendDepth,
                    receiveDepth,
                    maxSges,
                    maxReceiveSges == AS_FOR_SENDS ? maxSges : maxReceiveSges,
                    maxReadSges,
                    maxInlineBytes,
                    readDepth,
                    maxMessageBytes,
                    atomics,
                    immediateData,
                    sendWithInvalidate,
                    readSinkNeedsRemoteWrite,
                    receiveBufferBytes,
                    connectionMemory,
                    reportsPeerEnd);
        }
    }
}
