package org.verbena.bench.peers.contenders;

import io.vertx.core.Vertx;
import io.vertx.core.VertxBuilder;
import io.vertx.core.VertxOptions;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpClient;
import io.vertx.core.http.HttpClientResponse;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.PoolOptions;
import java.nio.file.Path;
import java.util.List;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.Place;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.vertx.RdmaTransport;

/**
 * HTTP/1.1 with Vert.x: a message is the body of a POST, and of its answer. One event loop a process, and as many
 * connections as requests are outstanding.
 */
public final class VertxContender implements Contender {
    private final boolean verbena;

    /**
     * Makes one.
     *
     * @param verbena whether it runs over Verbena, or on Netty's NIO sockets
     */
    public VertxContender(boolean verbena) {
        this.verbena = verbena;
    }

    @Override
    public List<String> jvmFlags() {
        return Nettys.JVM_FLAGS;
    }

    private Vertx vertx() {
        VertxBuilder builder = Vertx.builder().with(new VertxOptions().setEventLoopPoolSize(1));
        if (verbena) {
            builder.withTransport(
                    new RdmaTransport(ProviderChoice.choose(Place.provider(), null), CompletionLoopOptions.DEFAULTS));
        }
        return builder.build();
    }

    @Override
    public Server startServer(Path scratch) throws Exception {
        Vertx vertx = vertx();
        HttpServer server = vertx.createHttpServer()
                .requestHandler(request ->
                        request.body().onSuccess(body -> request.response().end(body)))
                .listen(0, Place.host())
                .toCompletionStage()
                .toCompletableFuture()
                .get();
        return new Server() {
            @Override
            public String address() {
                return Integer.toString(server.actualPort());
            }

            @Override
            public void close() {
                vertx.close();
            }
        };
    }

    @Override
    public Client connect(String address) {
        Vertx vertx = vertx();
        int port = Integer.parseInt(address);
        String host = Place.host();
        HttpClient client = vertx.createHttpClient(new PoolOptions().setHttp1MaxSize(Nettys.CONNECTIONS));
        return new Client() {
            @Override
            public void run(Load load) throws Exception {
                new Calls(
                                load,
                                (calls, sequence) -> client.request(HttpMethod.POST, port, host, "/")
                                        .compose(request -> request.send(Buffer.buffer(calls.payload().length)
                                                        .appendLong(sequence)
                                                        .appendBytes(calls.payload(), 8, calls.payload().length - 8))
                                                .compose(HttpClientResponse::body))
                                        .onSuccess(echo -> {
                                            calls.replied(
                                                    echo.getLong(0), echo.length(), echo.getByte(echo.length() - 1));
                                            calls.next();
                                        })
                                        .onFailure(calls::failed))
                        .run();
            }

            @Override
            public void close() {
                vertx.close();
            }
        };
    }
}
