package org.verbena.tools.perf;

import java.util.Locale;

/** The tests of {@code perf}. */
enum PerfTest {
    /** Messages; a latency is half a round trip. */
    MESSAGE(true),
    /** Requests with a reply of the same size; a latency is the whole of both. */
    REQUEST(false),
    /** A Netty {@code SocketChannel}; a latency is half a round trip of that many bytes. */
    STREAM(true),
    /** SENDs without the channel's protocol, as {@code ib_send_lat} and {@code ib_send_bw}. */
    SEND(true),
    /** Records written into a ring of the peer's memory; a latency is half a round trip. */
    RING(true),
    /** Unary gRPC calls with a reply of the same size; a latency is the whole of both. */
    GRPC(false),
    /** RDMA READ, as {@code ib_read_lat} and {@code ib_read_bw}. */
    READ(false),
    /** RDMA WRITE until it is completed: {@code ib_write_lat} has half a round trip of two writes instead. */
    WRITE(false),
    /** Fetch-and-add of eight bytes, as {@code ib_atomic_lat} and {@code ib_atomic_bw}. */
    ATOMIC(false);

    private final boolean isHalfARoundTrip;

    PerfTest(boolean isHalfARoundTrip) {
        this.isHalfARoundTrip = isHalfARoundTrip;
    }

    /**
     * The divisor of a measured time that gives a latency; 1 with a rate, since a delay by a stall is not part of a
     * round trip.
     */
    int divisor(boolean isLatency, PerfClient.Load load) {
        return isLatency && isHalfARoundTrip && load.ratePerSecond() == 0 ? 2 : 1;
    }

    /** The divisor of a measured time in nanoseconds that gives a latency in microseconds. */
    double nanosPerMicro(boolean isLatency, PerfClient.Load load) {
        return 1e3 * divisor(isLatency, load);
    }

    /** Whether the server counts what the client sends without an answer. */
    boolean isCounted(PerfClient.Load load) {
        return this == MESSAGE || this == SEND || this == RING || load.isBidirectional();
    }

    /** Whether the server can send as well while the client does. */
    boolean isBothWays() {
        return this == MESSAGE || this == STREAM || this == SEND;
    }

    /** The longest operation, in bytes. */
    int maxBytes() {
        return switch (this) {
            case SEND -> SendProtocol.MAX_BYTES;
            case GRPC -> PerfCalls.MAX_BYTES;
            case RING -> PerfRing.MAX_BYTES;
            default -> PerfProtocol.MAX_MEMORY_BYTES;
        };
    }

    /** Its name on the command line. */
    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
