package org.verbena.transport.protocol.connection;

import org.jspecify.annotations.Nullable;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.Endpoint;
import org.verbena.transport.spi.EndpointHandler;

/** A connection that takes no message where it lies: all come in receives, as they do on devices. */
public record PostedReceives(EndpointHandler connection) implements EndpointHandler {
    @Override
    public void onPrepared(Endpoint endpoint) {
        connection.onPrepared(endpoint);
    }

    @Override
    public void onConnected(Endpoint endpoint, byte[] privateData) {
        connection.onConnected(endpoint, privateData);
    }

    @Override
    public void onSendCompletion(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes) {
        connection.onSendCompletion(endpoint, workId, status, lengthBytes);
    }

    @Override
    public void onReceiveCompletion(
            Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
        connection.onReceiveCompletion(endpoint, workId, status, lengthBytes, flags, immediateData);
    }

    @Override
    public void onCompletionsHandled(Endpoint endpoint) {
        connection.onCompletionsHandled(endpoint);
    }

    @Override
    public byte[] rejection(Endpoint endpoint) {
        return connection.rejection(endpoint);
    }

    @Override
    public void onDisconnected(Endpoint endpoint, @Nullable Throwable cause) {
        connection.onDisconnected(endpoint, cause);
    }
}
