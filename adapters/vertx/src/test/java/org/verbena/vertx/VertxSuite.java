package org.verbena.vertx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.netty.channel.Channel;
import io.vertx.core.DeploymentOptions;
import io.vertx.core.Future;
import io.vertx.core.VerticleBase;
import io.vertx.core.Vertx;
import io.vertx.core.VertxBuilder;
import io.vertx.core.VertxOptions;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.dns.AddressResolverOptions;
import io.vertx.core.dns.DnsClient;
import io.vertx.core.eventbus.EventBusOptions;
import io.vertx.core.http.HttpClient;
import io.vertx.core.http.HttpClientOptions;
import io.vertx.core.http.HttpClientResponse;
import io.vertx.core.http.HttpClosedException;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServer;
import io.vertx.core.http.HttpServerOptions;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpVersion;
import io.vertx.core.http.WebSocket;
import io.vertx.core.internal.VertxInternal;
import io.vertx.core.internal.net.NetSocketInternal;
import io.vertx.core.net.NetServer;
import io.vertx.core.net.NetSocket;
import io.vertx.core.net.PfxOptions;
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.api.ProviderStatistics;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaSocketChannel;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.RdmaException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.Patience;

/** What applications have from Vert.x, over Verbena. A subclass names provider and address. */
@Timeout(200)
public abstract class VertxSuite {
    private static final int LOOPS = 3;

    private final List<Vertx> opened = new ArrayList<>();
    private Vertx vertx;

    /** Vert.x closes clients that the garbage collector finds. */
    private final List<Object> kept = new ArrayList<>();

    /** Requests that are answered when the test answers them. */
    private final BlockingQueue<HttpServerRequest> unanswered = new LinkedBlockingQueue<>();

    /** Which provider. */
    protected abstract String provider();

    /** Where servers listen. */
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

    @BeforeEach
    void open() {
        vertx = builder(new VertxOptions()).build();
        opened.add(vertx);
        assertThat(vertx.isNativeTransportEnabled()).isTrue();
        assertThat(vertx.unavailableNativeTransportCause()).isNull();
    }

    @AfterEach
    void close() {
        for (Vertx one : opened) {
            RdmaEventLoopGroup group = group(one);
            await("the end", one.close());
            assertThat(group.isTerminated()).isTrue();
        }
    }

    private VertxBuilder builder(VertxOptions options) {
        return Vertx.builder().with(options.setEventLoopPoolSize(LOOPS)).withTransport(transport());
    }

    /** What is tested. */
    RdmaTransport transport() {
        return new RdmaTransport(ProviderChoice.choose(provider(), null), CompletionLoopOptions.DEFAULTS);
    }

    private static RdmaEventLoopGroup group(Vertx vertx) {
        return (RdmaEventLoopGroup) ((VertxInternal) vertx).nettyEventLoopGroup();
    }

    /** Of the provider, for all that this process does over RDMA. */
    private ProviderStatistics statistics() {
        return group(vertx).providerStatistics();
    }

    private static <T> T await(String what, Future<T> future) {
        return Patience.await(what, future.toCompletionStage().toCompletableFuture());
    }

    private static Throwable failure(Future<?> future) {
        Throwable failure = catchThrowable(() ->
                future.toCompletionStage().toCompletableFuture().get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS));
        return failure.getCause();
    }

    private static Buffer random(int bytes) {
        byte[] value = new byte[bytes];
        new Random(bytes).nextBytes(value);
        return Buffer.buffer(value);
    }

    private static PfxOptions certificate() {
        try (InputStream in = VertxSuite.class.getResourceAsStream("localhost.p12")) {
            return new PfxOptions().setValue(Buffer.buffer(in.readAllBytes())).setPassword("password");
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    private HttpServer serve(int port, Version version) {
        HttpServerOptions options = new HttpServerOptions().setHost(host()).setPort(port);
        if (version == Version.HTTP_2_BY_TLS) {
            options.setSsl(true).setUseAlpn(true).setKeyCertOptions(certificate());
        }
        return await(
                "the server",
                vertx.createHttpServer(options)
                        .requestHandler(this::answer)
                        .webSocketHandler(socket -> socket.handler(socket::write))
                        .listen());
    }

    private void answer(HttpServerRequest request) {
        switch (request.path()) {
            case "/echo" -> request.pipeTo(request.response().setChunked(true));
            case "/version" -> request.response().end(request.version().toString());
            case "/later" -> unanswered.add(request);
            default -> request.response().setStatusCode(404).end();
        }
    }

    private HttpClient client(Version version) {
        HttpClientOptions options = new HttpClientOptions();
        switch (version) {
            case HTTP_1 -> options.setProtocolVersion(HttpVersion.HTTP_1_1);
            case HTTP_2_AT_ONCE ->
                options.setProtocolVersion(HttpVersion.HTTP_2).setHttp2ClearTextUpgrade(false);
            case HTTP_2_BY_UPGRADE ->
                options.setProtocolVersion(HttpVersion.HTTP_2).setHttp2ClearTextUpgrade(true);
            case HTTP_2_BY_TLS ->
                options.setProtocolVersion(HttpVersion.HTTP_2)
                        .setUseAlpn(true)
                        .setSsl(true)
                        .setTrustOptions(certificate())
                        .setVerifyHost(false); // the certificate is for localhost, wherever that is
        }
        return keep(vertx.createHttpClient(options));
    }

    /**
     * A body's handler is set within the callback that has the response: a callback of the whole chain may run on
     * another event loop, and later, when the first bytes are gone.
     */
    private Buffer echo(HttpClient client, int port, Buffer body) {
        return await(
                "the echo",
                client.request(HttpMethod.POST, port, host(), "/echo")
                        .compose(request -> request.send(body).compose(HttpClientResponse::body)));
    }

    private Future<String> get(HttpClient client, int port, String path) {
        return client.request(HttpMethod.GET, port, host(), path)
                .compose(request -> request.send().compose(HttpClientResponse::body))
                .map(Buffer::toString);
    }

    private <T> T keep(T client) {
        kept.add(client);
        return client;
    }

    private static Channel channel(NetSocket socket) {
        return ((NetSocketInternal) socket).channelHandlerContext().channel();
    }

    @ParameterizedTest
    @EnumSource
    void bodiesOfAllSizesGoBothWays(Version version) {
        HttpServer server = serve(0, version);
        HttpClient client = client(version);
        ProviderStatistics before = statistics();
        assertThat(await("the version", get(client, server.actualPort(), "/version")))
                .isEqualTo(version == Version.HTTP_1 ? "HTTP_1_1" : "HTTP_2");
        long sum = 0;
        for (int bytes : new int[] {0, 1, 4096, 100_000, 3 << 20}) {
            Buffer body = random(bytes);
            assertThat(echo(client, server.actualPort(), body)).isEqualTo(body);
            sum += 2L * bytes;
        }
        ProviderStatistics after = statistics();
        assertThat(after.connections() - before.connections()).isGreaterThanOrEqualTo(2);
        assertThat(after.messages().bytesReceived() - before.messages().bytesReceived())
                .isGreaterThan(sum);
    }

    @Test
    void largeBodiesPass() {
        Buffer body = random(largestBytes());
        assertThat(echo(client(Version.HTTP_1), serve(0, Version.HTTP_1).actualPort(), body))
                .isEqualTo(body);
    }

    @Test
    void filesAreSent(@TempDir Path folder) throws IOException {
        Buffer content = random(2_000_000);
        Path file = Files.write(folder.resolve("file"), content.getBytes());
        HttpServer server = await(
                "the server",
                vertx.createHttpServer()
                        .requestHandler(request -> request.response().sendFile(file.toString()))
                        .listen(0, host()));
        Future<Buffer> received = client(Version.HTTP_1)
                .request(HttpMethod.GET, server.actualPort(), host(), "/")
                .compose(request -> request.send().compose(HttpClientResponse::body));
        assertThat(await("the file", received)).isEqualTo(content);
    }

    @Test
    void webSocketsTalk() {
        int port = serve(0, Version.HTTP_1).actualPort();
        WebSocket socket =
                await("the socket", keep(vertx.createWebSocketClient()).connect(port, host(), "/talk"));
        BlockingQueue<Buffer> answers = new LinkedBlockingQueue<>();
        socket.handler(answers::add);
        for (int i = 1; i < 100; i++) {
            socket.writeBinaryMessage(random(i * 100));
            assertThat(Patience.take("answer " + i, answers)).isEqualTo(random(i * 100));
        }
        await("the close", socket.close());
    }

    @Test
    void manyRequestsAreUnderWayAtOnce() {
        int port = serve(0, Version.HTTP_1).actualPort();
        HttpClient client = client(Version.HTTP_1);
        List<Future<Buffer>> answers = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            Buffer body = random(i * 50);
            answers.add(client.request(HttpMethod.POST, port, host(), "/echo")
                    .compose(request -> request.send(body).compose(HttpClientResponse::body)));
        }
        for (int i = 0; i < 200; i++) {
            assertThat(await("answer " + i, answers.get(i))).isEqualTo(random(i * 50));
        }
    }

    @Test
    void aConnectionThatNobodyAcceptsIsRefused() {
        Throwable ofHttp = failure(get(client(Version.HTTP_1), 1, "/version"));
        assertThat(ofHttp).isInstanceOf(ConnectException.class).hasMessageContaining(":1");
        Throwable ofRung = group(vertx).ladder() == null ? ofHttp : ofHttp.getSuppressed()[0];
        assertThat(ofRung).hasCauseInstanceOf(RdmaException.class);
        assertThat(failure(keep(vertx.createNetClient()).connect(1, host()))).isInstanceOf(ConnectException.class);
    }

    @Test
    void aServerThatClosesEndsWhatIsUnderWayAndMayComeBack() {
        HttpServer first = serve(0, Version.HTTP_1);
        int port = first.actualPort();
        HttpClient client = client(Version.HTTP_1);
        Future<String> pending = get(client, port, "/later");
        Patience.take("the request", unanswered);
        await("the server's end", first.close());
        assertThat(failure(pending)).isInstanceOf(HttpClosedException.class);
        assertThat(failure(get(client, port, "/version"))).isInstanceOf(ConnectException.class);
        serve(port, Version.HTTP_1);
        assertThat(await("the version", get(client, port, "/version"))).isEqualTo("HTTP_1_1");
    }

    @Test
    void aServerThatShutsDownAnswersWhatItWasAsked() throws Exception {
        CountDownLatch shuttingDown = new CountDownLatch(1);
        HttpServer server = await(
                "the server",
                vertx.createHttpServer()
                        .requestHandler(this::answer)
                        .connectionHandler(connection -> connection.shutdownHandler(now -> shuttingDown.countDown()))
                        .listen(0, host()));
        Future<String> pending = get(client(Version.HTTP_1), server.actualPort(), "/later");
        HttpServerRequest request = Patience.take("the request", unanswered);
        Future<Void> ended = server.shutdown(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertThat(shuttingDown.await(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .isTrue();
        request.response().end("after all");
        assertThat(await("the answer", pending)).isEqualTo("after all");
        await("the server's end", ended);
    }

    @Test
    void instancesOfAServerShareItsPort() {
        BlockingQueue<Integer> ports = new LinkedBlockingQueue<>();
        await(
                "the instances",
                vertx.deployVerticle(
                        () -> new VerticleBase() {
                            @Override
                            public Future<?> start() {
                                return vertx.createHttpServer()
                                        .requestHandler(request -> request.response()
                                                .end(Thread.currentThread().getName()))
                                        .listen(-1, host()) // any port, the same for all instances
                                        .onSuccess(server -> ports.add(server.actualPort()));
                            }
                        },
                        new DeploymentOptions().setInstances(LOOPS)));
        int port = Patience.take("the port", ports);
        for (int i = 1; i < LOOPS; i++) { // each instance tells on a loop of its own
            assertThat(Patience.take("the port of another", ports)).isEqualTo(port);
        }
        Set<String> answers = new HashSet<>();
        for (int i = 0; i < LOOPS; i++) { // the connections go to the instances in turn
            answers.add(await("answer " + i, get(client(Version.HTTP_1), port, "/")));
        }
        assertThat(answers).hasSize(LOOPS);
    }

    @Test
    void bytesGoBothWays() {
        BlockingQueue<Channel> accepted = new LinkedBlockingQueue<>();
        NetServer server = await(
                "the server",
                vertx.createNetServer()
                        .connectHandler(socket -> {
                            accepted.add(channel(socket));
                            socket.pipeTo(socket);
                        })
                        .listen(0, host()));
        NetSocket socket = await("the socket", keep(vertx.createNetClient()).connect(server.actualPort(), host()));
        Buffer bytes = random(4 << 20);
        Buffer received = Buffer.buffer();
        CompletableFuture<Buffer> all = new CompletableFuture<>();
        socket.handler(sge -> {
            received.appendBuffer(sge);
            if (received.length() == bytes.length()) {
                all.complete(received);
            }
        });
        CountDownLatch closed = new CountDownLatch(1);
        socket.closeHandler(now -> closed.countDown());
        socket.write(bytes);
        assertThat(Patience.await("the echo", all)).isEqualTo(bytes);
        assertThat(channel(socket)).isInstanceOf(group(vertx).socketChannelClass());
        assertThat(Patience.take("the server's end of it", accepted)).isInstanceOf(RdmaSocketChannel.class);
        assertThat(socket.remoteAddress().port()).isEqualTo(server.actualPort());
        await("the server's end", server.close());
        Patience.until("the client is told", () -> closed.getCount() == 0);
    }

    @Test
    void nodesOfAClusterTalk() {
        Cluster cluster = new Cluster();
        Vertx first = node(cluster);
        Vertx second = node(cluster);
        await(
                "the registration",
                second.eventBus()
                        .<Buffer>consumer("echo", message -> message.reply(message.body()))
                        .completion());
        ProviderStatistics before = statistics();
        Buffer message = random(1 << 20);
        for (int i = 0; i < 10; i++) {
            assertThat(await("the reply", first.eventBus().<Buffer>request("echo", message))
                            .body())
                    .isEqualTo(message);
        }
        ProviderStatistics after = statistics();
        assertThat(after.connections() - before.connections()).isGreaterThanOrEqualTo(2);
        assertThat(after.messages().bytesReceived() - before.messages().bytesReceived())
                .isGreaterThan(20L << 20);
    }

    private Vertx node(Cluster cluster) {
        Vertx node = await(
                "the node",
                builder(new VertxOptions().setEventBusOptions(new EventBusOptions().setHost(host())))
                        .withClusterManager(cluster.newMember())
                        .buildClustered());
        opened.add(node);
        return node;
    }

    @Test
    void namesAreResolvedByDatagramsOnTheSameLoops() throws IOException {
        try (NameServer names = new NameServer(host())) {
            Vertx resolving = builder(new VertxOptions()
                            .setAddressResolverOptions(new AddressResolverOptions()
                                    .addServer("127.0.0.1:" + names.port())
                                    .setHostsValue(Buffer.buffer())))
                    .build();
            opened.add(resolving);
            int port = serve(0, Version.HTTP_1).actualPort();
            Future<String> answer = keep(resolving.createHttpClient())
                    .request(HttpMethod.GET, port, NameServer.NAME, "/version")
                    .compose(request -> request.send().compose(HttpClientResponse::body))
                    .map(Buffer::toString);
            assertThat(await("the answer", answer)).isEqualTo("HTTP_1_1");
            DnsClient dns = keep(resolving.createDnsClient(names.port(), "127.0.0.1"));
            assertThat(await("the addresses", dns.resolveA(NameServer.NAME))).containsExactly(host());
        }
    }
}
