package org.verbena.tools.perf;

import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import java.util.function.Supplier;
import org.verbena.api.RdmaClient;

/** Messages and requests, on the connection itself. */
final class PerfMessages implements PerfSubject {
    private final PerfConnection connection;
    private final RdmaClient client;

    PerfMessages(PerfConnection connection) {
        this.connection = connection;
        client = connection.client();
    }

    @Override
    public Supplier<Future<?>> operation(PerfTest test, boolean isLatency, int bytes, PerfClient.Load load) {
        if (test == PerfTest.REQUEST) {
            return () -> client.request(message(PerfProtocol.ECHO, bytes)).addListener(PerfMessages::release);
        }
        Echoes echoes = connection.echoes();
        return isLatency
                ? () -> echoes.expect(client.send(message(PerfProtocol.ECHO, bytes)))
                : () -> client.send(message(PerfProtocol.COUNT, bytes));
    }

    private ByteBuf message(byte what, int bytes) {
        return PerfConnection.filled(client.channel(), bytes).setByte(0, what);
    }

    private static void release(Future<? super ByteBuf> replied) {
        if (replied.isSuccess() && replied.getNow() instanceof ByteBuf reply) {
            reply.release();
        }
    }

    @Override
    public EventLoop loop() {
        return client.channel().eventLoop();
    }

    @Override
    public long arrived() throws InterruptedException {
        return connection.counted();
    }

    @Override
    public void beginReturn(int bytes, PerfClient.Load load) throws InterruptedException {
        connection.beginReturn(bytes, load.window());
    }

    @Override
    public long received() {
        return connection.received();
    }

    @Override
    public long endReturn() throws InterruptedException {
        return connection.endReturn();
    }

    @Override
    public void close() {}
}
