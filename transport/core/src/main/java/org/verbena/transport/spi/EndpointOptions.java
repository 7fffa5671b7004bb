package org.verbena.transport.spi;

import java.util.function.Consumer;
import org.verbena.transport.QueuePairEnd;

/**
 * The requested properties of an endpoint. Depths, SGEs and inline bytes are requests: a device may grant more, and
 * {@link Endpoint#capabilities()} has what it granted. The connection fails if depths or SGEs exceed a limit of the
 * device, and the message names the limit; inline bytes are reduced to the device's limit.
 *
 * <p>A depth or a number of elements up to its default is a wish: if the device has less, the endpoint gets that, as
 * {@link Endpoint#capabilities()} shows. More than the default is a demand: if the device has less, the connection
 * fails and the message names the limit.
 *
 * @param connectTimeoutMillis for all steps of connecting or accepting together, 1 or more
 * @param sendDepth work requests (sends, reads, writes, atomics) that may be outstanding, 1 or more
 * @param receiveDepth receives that may be posted, 1 or more; ignored with a shared receive queue
 * @param maxSges scatter/gather elements in one work request, 1 or more
 * @param maxInlineBytes payload that may be copied into a work request, 0 to 65536; fewer where the device has fewer
 * @param readDepth reads and atomics outstanding in each direction (initiator depth and responder resources), 0 to 128
 * @param retryCount transport retries before a connection fails, 0 to 7; at most 6 if queue pairs are connected by
 *     hand, since soft RoCE retries forever with 7 and nothing else reports a lost peer
 * @param rnrRetryCount receiver-not-ready retries, 0 to 6; 7 retries forever
 * @param minRnrTimerMicros how long the peer waits before it repeats a send that found no receive here, in
 *     microseconds, 10 to 655360, rounded up to a value that the device has; {@link #DEVICE_DEFAULT} for 0.64 ms. Only
 *     on InfiniBand and RoCE: elsewhere another value than the default fails the connection
 * @param ackTimeoutMicros how long the adapter waits for an acknowledgement before it sends again, in microseconds, 5
 *     to {@link #MAX_ACK_TIMEOUT_MICROS}, rounded up to 4.096 times a power of two; devices take up to four times as
 * long. {@link #DEVICE_DEFAULT} for 268 ms on RoCE, 67 ms if queue pairs are connected by hand, and on InfiniBand the
 *     subnet manager's value for the path. Only on InfiniBand and RoCE: elsewhere another value than the default fails
 *     the connection
 * @param trafficClass the IP type of service, 0 to 255; an accepting side has that of the connecting one
 * @param sharedReceiveQueue whether receives come from the loop's shared receive queue, where the provider has one
 * @param privateData sent to the peer in the connect request or reply; copied, never null. every provider carries
 *     {@link #MAX_PRIVATE_DATA_BYTES} bytes, some up to {@link #GREATEST_PRIVATE_DATA_BYTES}. More than the provider
 *     carries fails the connection, and the message names the limit
 */
public record EndpointOptions(
        int connectTimeoutMillis,
        int sendDepth,
        int receiveDepth,
        int maxSges,
        int maxInlineBytes,
        int readDepth,
        int retryCount,
        int rnrRetryCount,
        int minRnrTimerMicros,
        int ackTimeoutMicros,
        int trafficClass,
        boolean sharedReceiveQueue,
        byte[] privateData) {

    /**
     * The most private data that every provider carries, in bytes: rdma_cm on InfiniBand and RoCE allows 56 for a
     * connect request of the IP port space, the smallest limit of all.
     */
    public static final int MAX_PRIVATE_DATA_BYTES = 56;

    /**
     * The most private data that any provider could carry, in bytes: an MPA frame of iWARP (RFC 5044, 7.1.1), setup
     * data included.
     */
    public static final int GREATEST_PRIVATE_DATA_BYTES = QueuePairEnd.GREATEST_PRIVATE_DATA_BYTES;

    /** Leaves an option to the device. */
    public static final int DEVICE_DEFAULT = -1;

    /** The longest {@link #minRnrTimerMicros()}. */
    public static final int MAX_RNR_TIMER_MICROS = 655_360;

    /** The longest {@link #ackTimeoutMicros()}: 17 s, longer than any wait for one packet. */
    public static final int MAX_ACK_TIMEOUT_MICROS = 17_179_869;

    /**
     * 64 sends, 128 receives, 4 SGEs, 96 bytes inline, 16 reads, retries 7 and 7, 10 s to connect. 64 sends of 16 KiB
     * fill a path of 100 Gbit/s with a round trip of 80 us. 96 bytes take no more of the rings of mlx5, irdma and
     * bnxt_re than 64 would, since a send has room for 4 elements anyway: see {@code docs/running.md}.
     */
    public static final EndpointOptions DEFAULTS = of(new Values());

    /** Checks ranges and copies the private data. */
    public EndpointOptions {
        check("connectTimeoutMillis", connectTimeoutMillis, 1, Integer.MAX_VALUE);
        check("sendDepth", sendDepth, 1, 1 << 16);
        check("receiveDepth", receiveDepth, 1, 1 << 16);
        check("maxSges", maxSges, 1, 256);
        check("maxInlineBytes", maxInlineBytes, 0, 1 << 16);
        check("readDepth", readDepth, 0, 128);
        check("retryCount", retryCount, 0, 7);
        check("rnrRetryCount", rnrRetryCount, 0, 7);
        if (minRnrTimerMicros != DEVICE_DEFAULT) {
            check("minRnrTimerMicros", minRnrTimerMicros, 10, MAX_RNR_TIMER_MICROS);
        }
        if (ackTimeoutMicros != DEVICE_DEFAULT) {
            check("ackTimeoutMicros", ackTimeoutMicros, 5, MAX_ACK_TIMEOUT_MICROS);
        }
        check("trafficClass", trafficClass, 0, 255);
        if (privateData.length > GREATEST_PRIVATE_DATA_BYTES) {
            throw new IllegalArgumentException("private data of " + privateData.length + " bytes is over the limit of "
                    + GREATEST_PRIVATE_DATA_BYTES);
        }
        privateData = privateData.clone();
    }

    private static void check(String name, int value, int min, int max) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(name + " " + value + " is not within " + min + " to " + max);
        }
    }

    /**
     * These options with some of them changed: {@code with(o -> o.connectTimeoutMillis = value)}.
     *
     * @param change is given a copy, and sets fields, which have the components' names
     * @return the changed copy
     * @throws IllegalArgumentException a value is out of its range
     */
    public EndpointOptions with(Consumer<Values> change) {
        Values values = new Values();
        values.connectTimeoutMillis = connectTimeoutMillis;
        values.sendDepth = sendDepth;
        values.receiveDepth = receiveDepth;
        values.maxSges = maxSges;
        values.maxInlineBytes = maxInlineBytes;
        values.readDepth = readDepth;
        values.retryCount = retryCount;
        values.rnrRetryCount = rnrRetryCount;
        values.minRnrTimerMicros = minRnrTimerMicros;
        values.ackTimeoutMicros = ackTimeoutMicros;
        values.trafficClass = trafficClass;
        values.sharedReceiveQueue = sharedReceiveQueue;
        values.privateData = privateData;
        change.accept(values);
        return of(values);
    }

    private static EndpointOptions of(Values values) {
        return new EndpointOptions(
                values.connectTimeoutMillis,
                values.sendDepth,
                values.receiveDepth,
                values.maxSges,
                values.maxInlineBytes,
                values.readDepth,
                values.retryCount,
                values.rnrRetryCount,
                values.minRnrTimerMicros,
                values.ackTimeoutMicros,
                values.trafficClass,
                values.sharedReceiveQueue,
                values.privateData);
    }

    /** Fields that have the components' names, and the defaults. */
    @SuppressWarnings("doclint:missing") // the components have it
    public static final class Values {
        public int connectTimeoutMillis = 10_000;
        public int sendDepth = 64;
        public int receiveDepth = 128;
        public int maxSges = 4;
        public int maxInlineBytes = 96;
        public int readDepth = 16;
        public int retryCount = 7;
        public int rnrRetryCount = 7;
        public int minRnrTimerMicros = DEVICE_DEFAULT;
        public int ackTimeoutMicros = DEVICE_DEFAULT;
        public int trafficClass = 0;
        public boolean sharedReceiveQueue = false;
        public byte[] privateData = new byte[0];

        private Values() {}
    }
}
