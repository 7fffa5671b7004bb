package org.verbena.transport;

import java.util.function.Consumer;

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
 * @param firstReceiveBytes by default, the size of receives of a connection that was never busy, if it has receives of
 *     its own, which must be used in the order in which they are posted; 0 for {@code receiveBufferBytes}
 * @param connectionMemory whether memory can be registered for the peer of one connection only ({@code
 *     Endpoint.connectionMemory()}); otherwise a key opens its region to every peer of the device that knows it
 * @param groupMemory whether memory can be registered for the peers of several connections only, such as those of a
 *     server ({@code Endpoint.join}); otherwise a key opens its region to every peer of the device that knows it
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
        int firstReceiveBytes,
        boolean connectionMemory,
        boolean groupMemory,
        boolean reportsPeerEnd) {

    /**
     * What a minimal device can do: depths of 1, one element, messages of up to 2 GiB, receives of 16 KiB from the
     * beginning, no features. The peer's end is reported.
     */
    public static final EndpointCapabilities MINIMAL = of(new Values());

    /**
     * These capabilities with some of them changed: {@code with(o -> o.sendDepth = value)}.
     *
     * @param change is given a copy, and sets fields, which have the components' names
     * @return the changed copy
     */
    public EndpointCapabilities with(Consumer<Values> change) {
        Values values = new Values();
        values.sendDepth = sendDepth;
        values.receiveDepth = receiveDepth;
        values.maxSges = maxSges;
        values.maxReceiveSges = maxReceiveSges;
        values.maxReadSges = maxReadSges;
        values.maxInlineBytes = maxInlineBytes;
        values.readDepth = readDepth;
        values.maxMessageBytes = maxMessageBytes;
        values.atomics = atomics;
        values.immediateData = immediateData;
        values.sendWithInvalidate = sendWithInvalidate;
        values.readSinkNeedsRemoteWrite = readSinkNeedsRemoteWrite;
        values.receiveBufferBytes = receiveBufferBytes;
        values.firstReceiveBytes = firstReceiveBytes;
        values.connectionMemory = connectionMemory;
        values.groupMemory = groupMemory;
        values.reportsPeerEnd = reportsPeerEnd;
        change.accept(values);
        return of(values);
    }

    private static EndpointCapabilities of(Values values) {
        return new EndpointCapabilities(
                values.sendDepth,
                values.receiveDepth,
                values.maxSges,
                values.maxReceiveSges,
                values.maxReadSges,
                values.maxInlineBytes,
                values.readDepth,
                values.maxMessageBytes,
                values.atomics,
                values.immediateData,
                values.sendWithInvalidate,
                values.readSinkNeedsRemoteWrite,
                values.receiveBufferBytes,
                values.firstReceiveBytes,
                values.connectionMemory,
                values.groupMemory,
                values.reportsPeerEnd);
    }

    /** Fields that have the components' names, and the defaults. */
    @SuppressWarnings("doclint:missing") // the components have it
    public static final class Values {
        public int sendDepth = 1;
        public int receiveDepth = 1;
        public int maxSges = 1;
        public int maxReceiveSges = 1;
        public int maxReadSges = 1;
        public int maxInlineBytes = 0;
        public int readDepth = 0;
        public long maxMessageBytes = Integer.MAX_VALUE;
        public boolean atomics = false;
        public boolean immediateData = false;
        public boolean sendWithInvalidate = false;
        public boolean readSinkNeedsRemoteWrite = false;
        public int receiveBufferBytes = 16 << 10;
        public int firstReceiveBytes = 0;
        public boolean connectionMemory = false;
        public boolean groupMemory = false;
        public boolean reportsPeerEnd = true;

        private Values() {}
    }
}
