package org.verbena.tools.perf;

import io.netty.buffer.ByteBuf;
import io.netty.channel.EventLoop;
import io.netty.util.concurrent.Future;
import java.util.function.Supplier;
import org.verbena.api.RdmaChannel;
import org.verbena.transport.RemoteMemory;

/** Reads, writes and atomics, on memory of the server that only this connection has. */
final class PerfOneSided implements PerfSubject {
    private final PerfConnection connection;
    private final RdmaChannel channel;

    PerfOneSided(PerfConnection connection) {
        this.connection = connection;
        channel = connection.client().channel();
    }

    @Override
    public Supplier<Future<?>> operation(PerfTest test, boolean isLatency, int bytes, PerfClient.Load load)
            throws InterruptedException {
        if (test == PerfTest.ATOMIC && !channel.capabilities().atomics()) {
            throw new UnsupportedOperationException(connection.client().provider() + " has no atomics here");
        }
        RemoteMemory memory = connection.memory(bytes);
        return switch (test) {
            case READ ->
                () -> {
                    ByteBuf into = channel.alloc().buffer(bytes, bytes);
                    Future<Void> read = channel.read(memory, 0, into);
                    into.release(); // the operation holds it
                    return read;
                };
            case WRITE ->
                () -> {
                    ByteBuf from = PerfConnection.filled(channel, bytes);
                    Future<Void> write = channel.write(memory, 0, from);
                    from.release(); // the operation holds it
                    return write;
                };
            case ATOMIC -> () -> channel.fetchAndAdd(memory, 0, 1);
            default -> throw new IllegalArgumentException(test + " is not one-sided");
        };
    }

    @Override
    public EventLoop loop() {
        return channel.eventLoop();
    }

    @Override
    public void close() {}
}
