package org.verbena.ratis;

import java.io.Closeable;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import org.apache.ratis.conf.Parameters;
import org.apache.ratis.protocol.RaftPeer;
import org.apache.ratis.util.NetUtils;
import org.apache.ratis.util.PeerProxyMap;
import org.apache.ratis.util.TimeDuration;
import org.jspecify.annotations.Nullable;
import org.verbena.api.RdmaClient;
import org.verbena.api.client.ClientState;
import org.verbena.api.client.RequestOptions;
import org.verbena.api.service.Method;

/**
 * One connection to a server, which is not made again when it is lost: Ratis then makes another, and so knows which
 * requests were before and which after.
 */
final class PeerConnection implements Closeable {
    private final CompletableFuture<RdmaClient> connected;

    private PeerConnection(RdmaClient.Builder how, InetSocketAddress address) {
        connected = how.connectAsync(address.getHostString(), address.getPort());
    }

    /** The connections of a server or client, each made when it is first used. */
    static PeerProxyMap<PeerConnection> all(String owner, @Nullable Parameters parameters, Duration connectTimeout) {
        Consumer<? super RdmaClient.Builder> customizer = RdmaConfigKeys.Client.customizer(parameters);
        return new PeerProxyMap<>(owner, peer -> {
            RdmaClient.Builder builder = RdmaClient.builder().connectTimeout(connectTimeout);
            customizer.accept(builder);
            return new PeerConnection(builder.reconnect(false), addressOf(peer));
        });
    }

    private static InetSocketAddress addressOf(RaftPeer peer) throws IOException {
        String address = peer.getAddress();
        if (address == null) {
            throw new IOException("the peer " + peer.getId() + " has no address");
        }
        return NetUtils.createSocketAddr(address);
    }

    static Duration duration(TimeDuration value) {
        return Duration.of(value.getDuration(), value.getUnit().toChronoUnit());
    }

    /** Whether it could not be made, or is lost or closed. */
    boolean isOver() {
        return connected.isDone()
                && (connected.state() != Future.State.SUCCESS
                        || connected.resultNow().state() == ClientState.CLOSED);
    }

    /**
     * Calls a method once there is a connection.
     *
     * @param timeout from then on
     */
    <Q, R> CompletableFuture<R> call(Method<Q, R> method, Q request, Duration timeout) {
        RequestOptions options = RequestOptions.DEFAULTS.withTimeout(timeout);
        return connected.state() == Future.State.SUCCESS
                ? connected.resultNow().call(method, request, options)
                : connected.thenCompose(client -> client.call(method, request, options));
    }

    /** Calls a method and waits for the reply. */
    <Q, R> R await(Method<Q, R> method, Q request, Duration timeout) throws IOException {
        CompletableFuture<R> reply = call(method, request, timeout);
        try {
            return reply.get();
        } catch (InterruptedException interruption) {
            reply.cancel(false);
            Thread.currentThread().interrupt();
            InterruptedIOException interrupted = new InterruptedIOException("interrupted in a call of " + method);
            interrupted.initCause(interruption);
            throw interrupted;
        } catch (ExecutionException failed) {
            Throwable cause = failed.getCause();
            throw Failures.ioException(cause == null ? failed : cause);
        }
    }

    /** Does not wait: also called on event loops. Calls without a reply fail. */
    @Override
    public void close() {
        if (!connected.cancel(false) && connected.state() == Future.State.SUCCESS) {
            connected.resultNow().closeAsync();
        }
    }
}
