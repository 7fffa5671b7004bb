package org.verbena.bench.peers.contenders;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.Place;
import org.verbena.reactor.RdmaLoopResources;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import reactor.core.publisher.Mono;
import reactor.netty.DisposableServer;
import reactor.netty.http.client.HttpClient;
import reactor.netty.http.server.HttpServer;
import reactor.netty.resources.ConnectionProvider;
import reactor.netty.resources.LoopResources;

/**
 * HTTP/1.1 with Reactor Netty: a message is the body of a POST, and of its answer. One event loop a process, and as
 * many connections as requests are outstanding.
 */
public final class ReactorContender implements Contender {
    private static final Duration END_LIMIT = Duration.ofSeconds(2);

    private final boolean verbena;

    /**
     * Makes one.
     *
     * @param verbena whether it runs over Verbena, or on Netty's NIO sockets
     */
    public ReactorContender(boolean verbena) {
        this.verbena = verbena;
    }

    @Override
    public List<String> jvmFlags() {
        return Nettys.JVM_FLAGS;
    }

    private LoopResources loops() {
        return verbena
                ? new RdmaLoopResources(
                        "bench", ProviderChoice.choose(Place.provider(), null), 1, true, CompletionLoopOptions.DEFAULTS)
                : LoopResources.create("bench", 1, true);
    }

    @Override
    public Server startServer(Path scratch) {
        LoopResources loops = loops();
        DisposableServer server = HttpServer.create()
                .runOn(loops, false)
                .bindAddress(() -> Place.address(0))
                .handle((request, response) ->
                        response.send(request.receive().aggregate().retain()))
                .bindNow();
        return new Server() {
            @Override
            public String address() {
                return Integer.toString(server.port());
            }

            @Override
            public void close() {
                server.disposeNow(END_LIMIT);
                loops.dispose();
            }
        };
    }

    @Override
    public Client connect(String address) {
        LoopResources loops = loops();
        ConnectionProvider pool = ConnectionProvider.create("bench", Nettys.CONNECTIONS);
        HttpClient client = HttpClient.create(pool)
                .runOn(loops, false)
                .remoteAddress(() -> Place.address(Integer.parseInt(address)));
        return new Client() {
            @Override
            public void run(Load load) throws Exception {
                new Calls(
                                load,
                                (calls, sequence) -> client.post()
                                        .uri("/")
                                        .send(Mono.fromSupplier(() ->
                                                Nettys.message(ByteBufAllocator.DEFAULT, sequence, calls.payload())))
                                        .responseSingle((response, body) -> body.doOnNext(echo -> replied(calls, echo))
                                                .then())
                                        .subscribe(nothing -> {}, calls::failed, calls::next))
                        .run();
            }

            @Override
            public void close() {
                pool.dispose();
                loops.dispose();
            }
        };
    }

    private static void replied(Calls calls, ByteBuf echo) {
        calls.replied(echo.getLong(echo.readerIndex()), echo.readableBytes(), echo.getByte(echo.writerIndex() - 1));
    }
}
