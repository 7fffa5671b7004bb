package org.verbena.bench.peers.contenders;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.rsocket.Closeable;
import io.rsocket.Payload;
import io.rsocket.RSocket;
import io.rsocket.SocketAcceptor;
import io.rsocket.core.RSocketConnector;
import io.rsocket.core.RSocketServer;
import io.rsocket.frame.decoder.PayloadDecoder;
import io.rsocket.transport.netty.client.TcpClientTransport;
import io.rsocket.transport.netty.server.CloseableChannel;
import io.rsocket.transport.netty.server.TcpServerTransport;
import io.rsocket.util.ByteBufPayload;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.List;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.Place;
import org.verbena.rsocket.RdmaClientTransport;
import org.verbena.rsocket.RdmaServerTransport;
import reactor.core.publisher.Mono;
import reactor.netty.resources.LoopResources;
import reactor.netty.tcp.TcpClient;
import reactor.netty.tcp.TcpServer;

/** RSocket's request and response, over one connection, with payloads that are not copied. One event loop a process. */
@SuppressWarnings("NullAway") // block() gives what was connected, or throws
public final class RSocketContender implements Contender {
    private final boolean verbena;

    /**
     * Makes one.
     *
     * @param verbena whether it runs over Verbena, or on RSocket's own TCP transport
     */
    public RSocketContender(boolean verbena) {
        this.verbena = verbena;
    }

    @Override
    public List<String> jvmFlags() {
        return Nettys.JVM_FLAGS;
    }

    @Override
    public Server startServer(Path scratch) {
        RSocketServer server = RSocketServer.create(SocketAcceptor.forRequestResponse(RSocketContender::echo))
                .payloadDecoder(PayloadDecoder.ZERO_COPY);
        InetSocketAddress any = Place.address(0);
        if (verbena) {
            RdmaServerTransport.Server listening =
                    server.bindNow(RdmaServerTransport.create(any, new RdmaEventLoopGroup(Place.provider(), 1)));
            return server(listening, listening.address());
        }
        CloseableChannel listening = server.bindNow(TcpServerTransport.create(TcpServer.create()
                .runOn(LoopResources.create("bench", 1, true), false)
                .bindAddress(() -> any)));
        return server(listening, listening.address());
    }

    private static Mono<Payload> echo(Payload request) {
        return Mono.just(request); // the reply releases it
    }

    private static Server server(Closeable listening, InetSocketAddress address) {
        return new Server() {
            @Override
            public String address() {
                return Integer.toString(address.getPort());
            }

            @Override
            public void close() {
                listening.dispose();
            }
        };
    }

    @Override
    public Client connect(String address) {
        InetSocketAddress to = Place.address(Integer.parseInt(address));
        RSocket socket = RSocketConnector.create()
                .payloadDecoder(PayloadDecoder.ZERO_COPY)
                .connect(
                        verbena
                                ? RdmaClientTransport.create(to, new RdmaEventLoopGroup(Place.provider(), 1))
                                : TcpClientTransport.create(TcpClient.create()
                                        .runOn(LoopResources.create("bench", 1, true), false)
                                        .remoteAddress(() -> to)))
                .block();
        return new Client() {
            @Override
            public void run(Load load) throws Exception {
                new Calls(
                                load,
                                (calls, sequence) -> socket.requestResponse(ByteBufPayload.create(
                                                Nettys.message(ByteBufAllocator.DEFAULT, sequence, calls.payload())))
                                        .subscribe(echo -> replied(calls, echo), calls::failed, calls::next))
                        .run();
            }

            @Override
            public void close() {
                socket.dispose();
            }
        };
    }

    private static void replied(Calls calls, Payload echo) {
        ByteBuf data = echo.sliceData();
        calls.replied(data.getLong(data.readerIndex()), data.readableBytes(), data.getByte(data.writerIndex() - 1));
        echo.release();
    }
}
