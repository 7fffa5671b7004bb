package org.verbena.transport.verbs;

import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.DatagramArrival;
import org.verbena.transport.spi.DatagramDestination;
import org.verbena.transport.spi.DatagramEndpoint;
import org.verbena.transport.spi.DatagramHandler;

/** Keeps how a datagram endpoint begins and ends. */
final class Datagrams implements DatagramHandler {
    final CompletableFuture<DatagramEndpoint> opened = new CompletableFuture<>();
    final CompletableFuture<Optional<Throwable>> closed = new CompletableFuture<>();

    @Override
    public void onOpened(DatagramEndpoint endpoint) {
        opened.complete(endpoint);
    }

    @Override
    public void onResolved(DatagramEndpoint endpoint, DatagramDestination destination, @Nullable Throwable cause) {}

    @Override
    public void onGroupLost(DatagramEndpoint endpoint, DatagramDestination destination, Throwable cause) {}

    @Override
    public void onSendCompletion(DatagramEndpoint endpoint, long workId, WorkStatus status) {}

    @Override
    public void onReceiveCompletion(
            DatagramEndpoint endpoint, long workId, WorkStatus status, DatagramArrival arrival) {}

    @Override
    public void onCompletionsHandled(DatagramEndpoint endpoint) {}

    @Override
    public void onClosed(DatagramEndpoint endpoint, @Nullable Throwable cause) {
        closed.complete(Optional.ofNullable(cause));
    }
}
