package org.verbena.bench.stack;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GenericFutureListener;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;

/** Requests and replies of the short form. */
@SuppressWarnings("NullAway.Init") // opened before anything else
final class ShortFormLayer implements Layer, GenericFutureListener<Future<ByteBuf>> {
    private final String provider;
    private RdmaClient client;
    private @Nullable Series series;

    ShortFormLayer(String provider) {
        this.provider = provider;
    }

    @Override
    @SuppressWarnings("resource") // ends with the process
    public void open() {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider, 1);
        RdmaServer server = RdmaServer.builder()
                .group(group)
                .bind(Place.host(provider), 0, (exchange, message) -> exchange.reply(message.retain()));
        client = RdmaClient.builder().group(group).connect(Place.host(provider), server.port());
    }

    @Override
    public void start(Series next) {
        client.channel().eventLoop().execute(() -> {
            series = next;
            next.begin();
            for (int i = 0; i < next.window; i++) {
                send();
            }
        });
    }

    private void send() {
        ByteBuf message = client.channel().alloc().buffer(MESSAGE_BYTES);
        client.request(message.writerIndex(MESSAGE_BYTES)).addListener(this);
    }

    @Override
    public void operationComplete(Future<ByteBuf> reply) {
        Series current = series;
        if (!reply.isSuccess()) {
            if (current != null) {
                current.fail(reply.cause());
            }
            return;
        }
        reply.getNow().release();
        if (current != null && current.echoed()) {
            send();
        }
    }
}
