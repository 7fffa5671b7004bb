package org.verbena.reactor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.handler.codec.http2.Http2StreamChannel;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.RdmaException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Schedulers;
import reactor.netty.Connection;
import reactor.netty.DisposableServer;
import reactor.netty.http.HttpProtocol;
import reactor.netty.http.client.HttpClient;
import reactor.netty.http.server.HttpServer;
import reactor.netty.http.server.HttpServerRoutes;
import reactor.netty.resources.ConnectionProvider;
import reactor.netty.tcp.TcpClient;
import reactor.netty.tcp.TcpServer;

/** What applications have from Reactor Netty, over Verbena. A subclass names provider and address. */
@Timeout(200)
public abstract class ReactorSuite {
    private RdmaLoopResources loops;
    private ConnectionProvider pool;
    private final Queue<Channel> accepted = new ConcurrentLinkedQueue<>();
    private final Queue<Channel> connected = new ConcurrentLinkedQueue<>();

    /** A request came that is answered when {@link #answer} is. */
    private final CountDownLatch asked = new CountDownLatch(1);

    private final Sinks.One<String> answer = Sinks.one();

    /** Which provider. */
    protected abstract String provider();

    /** Where servers listen: an address, not a name. */
    protected String host() {
        return "127.0.0.1";
    }

    /** Of the largest body. */
    protected int largestBytes() {
        return 32 << 20;
    }

    /** Which version of HTTP, and how the ends agree on it. */
    enum Version {
        HTTP_1,
        HTTP_2_AT_ONCE,
        HTTP_2_BY_UPGRADE,
        HTTP_2_BY_TLS
    }

    /** What is tested. */
    RdmaLoopResources newLoops() {
        return new RdmaLoopResources(
                "suite", ProviderChoice.choose(provider(), null), 3, true, CompletionLoopOptions.DEFAULTS);
    }

    @BeforeEach
    void openLoops() {
        loops = newLoops();
        pool = ConnectionProvider.create("suite", 20);
    }

    @AfterEach
    void endLoops() {
        pool.disposeLater().block(Patience.LIMIT);
        loops.disposeLater(Duration.ZERO, Duration.ofSeconds(10)).block(Patience.LIMIT);
        assertThat(loops.loops().isTerminated()).isTrue();
        assertThat(loops.isDisposed()).isTrue();
        loops.disposeLater().block(Patience.LIMIT); // once more, in vain
    }

    private HttpServer server(int port, Version version) {
        HttpServer server = HttpServer.create()
                .runOn(loops)
                .bindAddress(() -> new InetSocketAddress(host(), port))
                .doOnConnection(connection -> accepted.add(transport(connection)))
                .route(ReactorSuite.this::routes);
        return switch (version) {
            case HTTP_1 -> server;
            case HTTP_2_AT_ONCE, HTTP_2_BY_UPGRADE -> server.protocol(HttpProtocol.HTTP11, HttpProtocol.H2C);
            case HTTP_2_BY_TLS -> server.protocol(HttpProtocol.H2).secure(ssl -> ssl.sslContext(Tls.server()));
        };
    }

    private void routes(HttpServerRoutes routes) {
        routes.post(
                        "/echo",
                        (request, response) -> response.send(request.receive().retain()))
                .get(
                        "/version",
                        (request, response) ->
                                response.sendString(Mono.just(request.version().toString())))
                .get("/later", (request, response) -> {
                    asked.countDown();
                    return response.sendString(answer.asMono());
                })
                .get(
                        "/thread",
                        (request, response) -> response.sendString(Mono.just(Schedulers.isInNonBlockingThread() + " "
                                + catchThrowable(() -> Mono.never().block(Duration.ofSeconds(1))))));
    }

    private DisposableServer serve(Version version) {
        return server(0, version).bindNow(Patience.LIMIT);
    }

    /** Knows the server as localhost, which is whose certificate it has. */
    private HttpClient client(int port, Version version) {
        HttpClient client = HttpClient.create(pool)
                .runOn(loops)
                .remoteAddress(() -> address(port))
                .doOnConnected(connection -> connected.add(transport(connection)));
        return switch (version) {
            case HTTP_1 -> client;
            case HTTP_2_AT_ONCE -> client.protocol(HttpProtocol.H2C);
            case HTTP_2_BY_UPGRADE -> client.protocol(HttpProtocol.HTTP11, HttpProtocol.H2C);
            case HTTP_2_BY_TLS -> client.protocol(HttpProtocol.H2).secure(ssl -> ssl.sslContext(Tls.client()));
        };
    }

    private InetSocketAddress address(int port) {
        try {
            return new InetSocketAddress(
                    InetAddress.getByAddress(
                            Tls.NAME, InetAddress.getByName(host()).getAddress()),
                    port);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    /** The channel that bytes go through: that of all streams for a stream of HTTP/2. */
    private static Channel transport(Connection connection) {
        Channel channel = connection.channel();
        return channel instanceof Http2StreamChannel ? channel.parent() : channel;
    }

    private static byte[] random(int bytes) {
        byte[] value = new byte[bytes];
        new Random(bytes).nextBytes(value);
        return value;
    }

    private static byte[] echo(HttpClient client, byte[] body) {
        return client.post()
                .uri("/echo")
                .send(pieces(body))
                .responseSingle((response, content) -> content.asByteArray().defaultIfEmpty(new byte[0]))
                .block(Patience.LIMIT);
    }

    private static Flux<ByteBuf> pieces(byte[] body) {
        int size = 100_000;
        return Flux.range(0, (body.length + size - 1) / size)
                .map(piece -> Unpooled.wrappedBuffer(body, piece * size, Math.min(size, body.length - piece * size)));
    }

    private static String get(HttpClient client, String path) {
        return client.get().uri(path).responseContent().aggregate().asString().block(Patience.LIMIT);
    }

    @ParameterizedTest
    @EnumSource
    void bodiesOfAllSizesGoBothWays(Version version) {
        DisposableServer server = serve(version);
        HttpClient client = client(server.port(), version);
        assertThat(get(client, "/version")).isEqualTo(version == Version.HTTP_1 ? "HTTP/1.1" : "HTTP/2.0");
        for (int bytes : new int[] {0, 1, 4096, 100_000, 3 << 20}) {
            byte[] body = random(bytes);
            assertThat(echo(client, body)).isEqualTo(body);
        }
        assertThat(accepted).isNotEmpty().allMatch(RdmaSocketChannel.class::isInstance);
        assertThat(connected).isNotEmpty().allMatch(loops.loops().socketChannelClass()::isInstance);
        assertThat(server.channel()).isInstanceOf(RdmaServerSocketChannel.class);
        server.disposeNow(Patience.LIMIT);
    }

    @Test
    void largeBodiesPass() {
        DisposableServer server = serve(Version.HTTP_1);
        byte[] body = random(largestBytes());
        assertThat(echo(client(server.port(), Version.HTTP_1), body)).isEqualTo(body);
        server.disposeNow(Patience.LIMIT);
    }

    @Test
    void filesAreSent(@TempDir Path folder) throws IOException {
        byte[] content = random(2_000_000);
        Path file = Files.write(folder.resolve("file"), content);
        DisposableServer server = HttpServer.create()
                .runOn(loops)
                .host(host())
                .route(routes -> routes.file("/file", file))
                .bindNow(Patience.LIMIT);
        assertThat(client(server.port(), Version.HTTP_1)
                        .get()
                        .uri("/file")
                        .responseContent()
                        .aggregate()
                        .asByteArray()
                        .block(Patience.LIMIT))
                .isEqualTo(content);
        server.disposeNow(Patience.LIMIT);
    }

    @Test
    void manyRequestsAreUnderWayAtOnce() {
        DisposableServer server = serve(Version.HTTP_1);
        HttpClient client = client(server.port(), Version.HTTP_1);
        List<byte[]> bodies = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            bodies.add(random(i * 50));
        }
        List<byte[]> answers = Flux.fromIterable(bodies)
                .flatMapSequential(
                        body -> client.post()
                                .uri("/echo")
                                .send(pieces(body))
                                .responseSingle((response, content) ->
                                        content.asByteArray().defaultIfEmpty(new byte[0])),
                        20)
                .collectList()
                .block(Patience.LIMIT);
        assertThat(answers).containsExactlyElementsOf(bodies);
        server.disposeNow(Patience.LIMIT);
    }

    @Test
    void aConnectionThatNobodyAcceptsIsRefused() {
        Throwable failure = catchThrowable(() -> get(client(1, Version.HTTP_1), "/version"));
        assertThat(failure).hasCauseInstanceOf(ConnectException.class);
        Throwable ofLadder = failure.getCause();
        Throwable ofRung = loops.loops().ladder() == null ? ofLadder : ofLadder.getSuppressed()[0];
        assertThat(ofRung).hasMessageContaining(":1").hasCauseInstanceOf(RdmaException.class);
    }

    @Test
    void aPortIsTakenOnce() {
        DisposableServer server = serve(Version.HTTP_1);
        assertThatThrownBy(() -> server(server.port(), Version.HTTP_1).bindNow(Patience.LIMIT))
                .hasMessageContaining(String.valueOf(server.port()));
        server.disposeNow(Patience.LIMIT);
    }

    @Test
    void aServerThatClosesEndsWhatIsUnderWayAndMayComeBack() throws Exception {
        DisposableServer first = serve(Version.HTTP_1);
        int port = first.port();
        HttpClient client = client(port, Version.HTTP_1);
        CompletableFuture<String> pending = client.get()
                .uri("/later")
                .responseContent()
                .aggregate()
                .asString()
                .toFuture();
        assertThat(asked.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)).isTrue();
        first.disposeNow(Patience.LIMIT);
        accepted.forEach(Channel::close);
        assertThat(catchThrowable(() -> pending.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)))
                .hasCauseInstanceOf(IOException.class);
        assertThat(catchThrowable(() -> get(client, "/version"))).hasCauseInstanceOf(ConnectException.class);
        DisposableServer second = server(port, Version.HTTP_1).bindNow(Patience.LIMIT);
        assertThat(get(client, "/version")).isEqualTo("HTTP/1.1");
        second.disposeNow(Patience.LIMIT);
    }

    @Test
    void aServerThatShutsDownAnswersWhatItWasAsked() throws Exception {
        DisposableServer server = server(0, Version.HTTP_1)
                .channelGroup(new DefaultChannelGroup(GlobalEventExecutor.INSTANCE))
                .bindNow(Patience.LIMIT);
        HttpClient client = client(server.port(), Version.HTTP_1);
        CompletableFuture<String> pending = client.get()
                .uri("/later")
                .responseContent()
                .aggregate()
                .asString()
                .toFuture();
        assertThat(asked.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)).isTrue();
        CompletableFuture<Void> ending = CompletableFuture.runAsync(() -> server.disposeNow(Patience.LIMIT));
        Patience.until("the server listens no more", () -> !server.channel().isActive());
        answer.tryEmitValue("after all").orThrow();
        assertThat(Patience.await("the answer", pending)).isEqualTo("after all");
        Patience.await("the server's end", ending);
    }

    @Test
    void nothingBlocksOnALoop() {
        DisposableServer server = serve(Version.HTTP_1);
        assertThat(get(client(server.port(), Version.HTTP_1), "/thread"))
                .startsWith("true ")
                .contains("block()");
        server.disposeNow(Patience.LIMIT);
    }

    @Test
    void bytesGoBothWays() {
        DisposableServer server = TcpServer.create()
                .runOn(loops)
                .host(host())
                .handle((in, out) -> out.send(in.receive().retain()))
                .bindNow(Patience.LIMIT);
        Connection connection = TcpClient.create(pool)
                .runOn(loops)
                .remoteAddress(() -> address(server.port()))
                .connectNow(Patience.LIMIT);
        assertThat(connection.channel()).isInstanceOf(loops.loops().socketChannelClass());
        byte[] bytes = random(1 << 20);
        Mono<byte[]> echo = connection
                .inbound()
                .receive()
                .asByteArray()
                .scan(new byte[0], ReactorSuite::joined)
                .filter(received -> received.length >= bytes.length)
                .next();
        CompletableFuture<byte[]> received = echo.toFuture();
        connection.outbound().sendByteArray(Mono.just(bytes)).then().subscribe();
        assertThat(Patience.await("the echo", received)).isEqualTo(bytes);
        connection.disposeNow(Patience.LIMIT);
        server.disposeNow(Patience.LIMIT);
    }

    private static byte[] joined(byte[] first, byte[] second) {
        byte[] both = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, both, first.length, second.length);
        return both;
    }
}
