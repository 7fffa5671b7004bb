package org.verbena.transport.soft;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.software.SoftwareIoHandler;

/**
 * The two halves of a connection once the startup phase is over, and the watch over what its peer owes. Not
 * thread-safe; confined to the loop's thread.
 */
final class FpduStream {
    final FpduSender out;
    final OutboundReads outbound;
    final FpduParser parser;
    final SocketReader in;
    private final MinimumRate segmentRate = new MinimumRate();
    private final MinimumRate messageRate = new MinimumRate();
    private final MinimumRate responseRate = new MinimumRate();
    private final MinimumRate sendRate = new MinimumRate();
    private final MinimumRate ringRate = new MinimumRate();

    /**
     * Created when both sides have accepted.
     *
     * @param out the sending half
     * @param outbound reads that wait for the peer
     * @param parser the receiving half
     * @param in feeds it
     */
    FpduStream(FpduSender out, OutboundReads outbound, FpduParser parser, SocketReader in) {
        this.out = out;
        this.outbound = outbound;
        this.parser = parser;
        this.in = in;
    }

    /**
     * What the peer owes without enough progress. Checked once a tick, for each of them separately: progress of one
     * does not excuse another.
     *
     * @param tick the loop's time
     * @param minBytes what is enough progress for a stall timeout
     * @return null if it owes nothing, or makes enough progress
     */
    @Nullable String overdue(int tick, long minBytes) {
        int ticks = SoftwareIoHandler.TICKS_PER_STALL;
        boolean segment =
                segmentRate.isTooSlow(tick, ticks, in.isInSegment(), parser.segments(), in.receivedBytes(), minBytes);
        boolean message = messageRate.isTooSlow(
                tick, ticks, parser.isInMessage(), parser.messages(), parser.messageBytes(), minBytes);
        boolean response = responseRate.isTooSlow(
                tick, ticks, outbound.awaitsResponse(), outbound.answers(), parser.responseBytes(), minBytes);
        boolean send = sendRate.isTooSlow(tick, ticks, out.isBlocked(), 0, out.writtenPosition(), minBytes);
        boolean ring = ringRate.isTooSlow(tick, ticks, out.isSending(), out.sends(), 0, minBytes);
        if (segment || message) {
            return "the rest of a message";
        }
        if (response) {
            return "the response to a read or atomic";
        }
        return send || ring ? "room to send" : null;
    }
}
