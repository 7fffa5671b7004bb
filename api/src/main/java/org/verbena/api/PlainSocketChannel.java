package org.verbena.api;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelPromise;
import io.netty.channel.RecvByteBufAllocator;
import io.netty.channel.socket.SocketChannelConfig;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.nio.ByteBuffer;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.server.Arrival;
import org.verbena.api.internal.stat.ProviderAccount;
import org.verbena.transport.ConnectionException;

/**
 * A plain TCP connection on the port of an {@link RdmaServerSocketChannel}: Netty's own socket channel, whose first
 * bytes were already read to recognise the protocol. The first read delivers them, before bytes of the socket.
 */
final class PlainSocketChannel extends NioSocketChannel {
    private static final Logger LOG = LoggerFactory.getLogger(PlainSocketChannel.class);

    private final RdmaServerChannel server;
    private final ProviderAccount account;
    private final String peer;

    /** Event loop only, once registered. */
    private final ByteBuffer firstBytes;

    /** Null while the base class is being constructed. */
    private @Nullable PlainSocketChannelConfig config;

    /** Written before it is registered, or by its loop. */
    private volatile boolean refused;

    PlainSocketChannel(RdmaServerChannel server, Arrival.Plain arrival) {
        super(server, arrival.socket());
        this.server = server;
        firstBytes = arrival.firstBytes();
        peer = String.valueOf(arrival.socket().socket().getRemoteSocketAddress());
        config = new PlainSocketChannelConfig(super.config(), this::refuse);
        account = ProviderAccount.of(arrival.provider());
        attr(Carrier.ATTRIBUTE)
                .set(new Carrier(
                        Carrier.TCP,
                        firstBytes.hasRemaining()
                                ? "its first bytes are not an MPA request"
                                : "it sent nothing that identifies its protocol"));
        account.plainBegan();
        closeFuture().addListener(closed -> account.plainEnded());
    }

    @Override
    public SocketChannelConfig config() {
        PlainSocketChannelConfig known = config;
        return known == null ? super.config() : known;
    }

    /** Closes the connection, since the server requires keys of its clients. */
    private void refuse() {
        refused = true;
        server.refusePlain(peer);
        if (isRegistered()) {
            close();
        }
    }

    @Override
    protected void doRegister(ChannelPromise promise) {
        if (refused) {
            promise.setFailure(new ConnectionException.Rejected(
                    "plain TCP connection of " + peer + ": " + RdmaServerChannel.KEYS_WITHOUT_PLAIN, new byte[0]));
            return;
        }
        super.doRegister(promise);
    }

    @Override
    protected void doBeginRead() throws Exception {
        super.doBeginRead();
        if (firstBytes.hasRemaining()) {
            // The socket may never become readable: its peer waits for an answer to just these bytes.
            try {
                eventLoop().execute(this::readFirst0);
            } catch (RejectedExecutionException ended) {
                LOG.debug("{} ends with its loop", this, ended);
            }
        }
    }

    @SuppressWarnings("deprecation") // the only way to see that auto-read was switched off in the meantime
    private void readFirst0() {
        if (firstBytes.hasRemaining() && isOpen() && isReadPending()) {
            unsafe().read();
        }
    }

    @Override
    @SuppressWarnings("deprecation") // as in the base class
    protected int doReadBytes(ByteBuf into) throws Exception {
        int count = Math.min(firstBytes.remaining(), into.writableBytes());
        if (count == 0) {
            return super.doReadBytes(into);
        }
        RecvByteBufAllocator.Handle allocation = unsafe().recvBufAllocHandle();
        allocation.attemptedBytesRead(count); // a full read: continue with the socket
        ByteBuffer part = firstBytes.slice(firstBytes.position(), count);
        firstBytes.position(firstBytes.position() + count);
        into.writeBytes(part);
        return count;
    }
}
