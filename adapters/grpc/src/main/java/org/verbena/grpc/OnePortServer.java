package org.verbena.grpc;

import io.grpc.Server;
import io.grpc.ServerServiceDefinition;
import java.io.IOException;
import java.net.SocketAddress;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A server for calls as messages, and one for HTTP/2 that owns the port: they begin and end together. */
final class OnePortServer extends Server {
    private final Server messages;
    private final Server http2;

    OnePortServer(Server messages, Server http2) {
        this.messages = messages;
        this.http2 = http2;
    }

    @Override
    public Server start() throws IOException {
        messages.start(); // first, since connections arrive as soon as the port is open
        try {
            http2.start();
        } catch (Throwable failure) {
            messages.shutdownNow();
            throw failure;
        }
        return this;
    }

    @Override
    public int getPort() {
        return http2.getPort();
    }

    @Override
    public List<? extends SocketAddress> getListenSockets() {
        return http2.getListenSockets();
    }

    @Override
    public List<ServerServiceDefinition> getServices() {
        return messages.getServices();
    }

    @Override
    public List<ServerServiceDefinition> getImmutableServices() {
        return messages.getImmutableServices();
    }

    @Override
    public List<ServerServiceDefinition> getMutableServices() {
        return messages.getMutableServices();
    }

    @Override
    public Server shutdown() {
        http2.shutdown(); // closes the port
        messages.shutdown();
        return this;
    }

    @Override
    public Server shutdownNow() {
        http2.shutdownNow();
        messages.shutdownNow();
        return this;
    }

    @Override
    public boolean isShutdown() {
        return http2.isShutdown() && messages.isShutdown();
    }

    @Override
    public boolean isTerminated() {
        return http2.isTerminated() && messages.isTerminated();
    }

    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
        long deadlineNanos = System.nanoTime() + unit.toNanos(timeout);
        return http2.awaitTermination(timeout, unit)
                && messages.awaitTermination(Math.max(0, deadlineNanos - System.nanoTime()), TimeUnit.NANOSECONDS);
    }

    @Override
    public void awaitTermination() throws InterruptedException {
        http2.awaitTermination();
        messages.awaitTermination();
    }
}
