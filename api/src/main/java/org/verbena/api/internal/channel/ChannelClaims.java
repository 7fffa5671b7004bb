package org.verbena.api.internal.channel;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelOutboundBuffer;
import org.verbena.transport.MessageClaims;
import org.verbena.transport.protocol.connection.MessageConnection;

/** The claims of a channel's connection, which keep their place among the writes that were flushed. Event loop only. */
public final class ChannelClaims implements MessageClaims {
    private final OutboundBridge.Host host;
    private final OutboundBridge bridge;
    private final ChannelConnection connection;
    private final MessageConnection open;
    private final MessageClaims claims;

    /**
     * Creates those of a connection that both ends have agreed on.
     *
     * @throws UnsupportedOperationException its framing is not MESSAGE
     */
    public ChannelClaims(
            OutboundBridge.Host host, OutboundBridge bridge, ChannelConnection connection, MessageConnection open) {
        this.host = host;
        this.bridge = bridge;
        this.connection = connection;
        this.open = open;
        claims = open.claims();
    }

    /**
     * Refuses other threads.
     *
     * @throws IllegalStateException this is another thread
     */
    public static void checkInLoop(OutboundBridge.Host host) {
        if (!host.eventLoop().inEventLoop()) {
            throw new IllegalStateException("claims are for the channel's event loop, not for " + Thread.currentThread()
                    + ": use them in a handler, or in a task of channel.eventLoop()");
        }
    }

    @Override
    public int maxBytes() {
        return claims.maxBytes();
    }

    @Override
    public Outcome tryClaim(int lengthBytes) {
        checkInLoop(host);
        handOver0();
        Outcome outcome = claims.tryClaim(lengthBytes);
        if (outcome == Outcome.BACK_PRESSURED) {
            bridge.onCredits(false);
            if (open.isWritable()) { // since then; the channel's handlers must see that there was a change
                bridge.onCredits(true);
            }
        }
        return outcome;
    }

    @Override
    public ByteBuf buffer() {
        return claims.buffer();
    }

    @Override
    public boolean commit() {
        checkInLoop(host);
        handOver0();
        return claims.commit();
    }

    @Override
    public void abort() {
        checkInLoop(host);
        claims.abort();
    }

    @Override
    public void flush() {
        checkInLoop(host);
        connection.sending0();
        open.flush();
    }

    /** What was flushed before, and waits in Netty's buffer for credits, goes first. */
    private void handOver0() {
        ChannelOutboundBuffer outbound = host.outboundBuffer();
        if (outbound != null && outbound.size() > 0) {
            bridge.handOverFlushed(outbound, open);
        }
    }
}
