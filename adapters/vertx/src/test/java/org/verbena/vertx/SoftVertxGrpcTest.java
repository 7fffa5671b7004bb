package org.verbena.vertx;

import static org.assertj.core.api.Assertions.assertThat;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpServer;
import io.vertx.core.internal.VertxInternal;
import io.vertx.core.net.SocketAddress;
import io.vertx.grpc.client.GrpcClient;
import io.vertx.grpc.common.GrpcStatus;
import io.vertx.grpc.common.ServiceName;
import io.vertx.grpc.server.GrpcServer;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;

/** Vert.x's own gRPC, which is HTTP/2 of Vert.x, over Verbena. */
@Timeout(200)
class SoftVertxGrpcTest {
    private static final String HOST = "127.0.0.1";
    private static final ServiceName SERVICE = ServiceName.create("test.Echo");

    private final Vertx vertx = Vertx.builder()
            .withTransport(new RdmaTransport(ProviderChoice.choose("soft", null), CompletionLoopOptions.DEFAULTS))
            .build();

    @AfterEach
    void close() {
        await("the end", vertx.close());
    }

    private static <T> T await(String what, Future<T> future) {
        return Patience.await(what, future.toCompletionStage().toCompletableFuture());
    }

    private int serve(GrpcServer calls) {
        HttpServer server = await(
                "the server", vertx.createHttpServer().requestHandler(calls).listen(0, HOST));
        return server.actualPort();
    }

    private long connections() {
        return ((RdmaEventLoopGroup) ((VertxInternal) vertx).nettyEventLoopGroup())
                .providerStatistics()
                .openConnections();
    }

    @Test
    void answersCalls() {
        int port = serve(GrpcServer.server(vertx)
                .callHandler(call -> call.handler(message -> call.response()
                        .end(Buffer.buffer(call.methodName() + " ").appendBuffer(message)))));
        GrpcClient client = GrpcClient.client(vertx);
        for (int i = 0; i < 20; i++) {
            int number = i;
            Buffer reply = await(
                    "a reply",
                    client.request(SocketAddress.inetSocketAddress(port, HOST)).compose(call -> {
                        call.serviceName(SERVICE).methodName("Say").end(Buffer.buffer("hello " + number));
                        return call.response().compose(response -> response.last());
                    }));
            assertThat(reply.toString()).isEqualTo("Say hello " + number);
        }
        assertThat(connections()).isPositive();
        await("the client's end", client.close());
    }

    @Test
    void streamsBothWays() {
        int port = serve(GrpcServer.server(vertx).callHandler(call -> {
            call.handler(message -> call.response().write(message));
            call.endHandler(end -> call.response().end());
        }));
        GrpcClient client = GrpcClient.client(vertx);
        List<String> echoed = new ArrayList<>();
        GrpcStatus status = await(
                "the stream's end",
                client.request(SocketAddress.inetSocketAddress(port, HOST)).compose(call -> {
                    call.serviceName(SERVICE).methodName("Stream");
                    for (int i = 0; i < 1000; i++) {
                        call.write(Buffer.buffer("message " + i));
                    }
                    call.end();
                    return call.response().compose(response -> {
                        response.handler(message -> echoed.add(message.toString()));
                        return response.end().map(end -> response.status());
                    });
                }));
        assertThat(status).isEqualTo(GrpcStatus.OK);
        assertThat(echoed).hasSize(1000).startsWith("message 0").endsWith("message 999");
        await("the client's end", client.close());
    }
}
