package org.verbena.samples.http;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.http.DefaultFullHttpRequest;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpClientCodec;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpScheme;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2StreamChannelBootstrap;
import io.netty.handler.codec.http2.Http2StreamFrameToHttpObjectCodec;
import io.netty.handler.codec.http2.HttpConversionUtil;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.TransportOption;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** An HTTP client over RDMA or TCP. Over TCP curl would do as well. */
@Command(name = "http-client", description = "Requests a path from http-server, over HTTP/1.1 or HTTP/2.")
public final class HttpClient implements Callable<Integer> {
    private static final int MAX_CONTENT_BYTES = 1 << 20;
    private static final long LIMIT_SECONDS = 30;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private TransportOption transport;

    @Option(names = "--http2", description = "Use HTTP/2 instead of HTTP/1.1.")
    private boolean http2;

    @Option(
            names = "--path",
            paramLabel = "PATH",
            defaultValue = "/",
            description = "The path to request (${DEFAULT-VALUE}).")
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private String path;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        EventLoopGroup group = transport.newGroup(options);
        try {
            CompletableFuture<String> answer = new CompletableFuture<>();
            Channel connection = new Bootstrap()
                    .group(group)
                    .channel(transport.channelClass())
                    .handler(connection(answer))
                    .connect(options.host, options.remotePort())
                    .sync()
                    .channel();
            connection
                    .closeFuture()
                    .addListener(closed -> answer.completeExceptionally(
                            new CommandFailure("the server closed the connection without an answer")));
            Channel stream = http2
                    ? new Http2StreamChannelBootstrap(connection)
                            .handler(initializer(
                                    new Http2StreamFrameToHttpObjectCodec(false),
                                    new HttpObjectAggregator(MAX_CONTENT_BYTES),
                                    completing(answer)))
                            .open()
                            .sync()
                            .getNow()
                    : connection;
            stream.writeAndFlush(request()).sync();
            PrintWriter out = spec.commandLine().getOut();
            out.print(answer.get(LIMIT_SECONDS, TimeUnit.SECONDS));
            out.flush();
            connection.close().sync();
        } catch (ExecutionException failure) {
            throw new CommandFailure("no answer: " + failure.getMessage(), failure);
        } catch (TimeoutException failure) {
            throw new CommandFailure("no answer within " + LIMIT_SECONDS + " s", failure);
        } finally {
            TransportOption.end(group);
        }
        return CommandLine.ExitCode.OK;
    }

    private FullHttpRequest request() {
        FullHttpRequest request = new DefaultFullHttpRequest(HttpVersion.HTTP_1_1, HttpMethod.GET, path);
        request.headers()
                .set(HttpHeaderNames.HOST, options.host + ":" + options.remotePort())
                .set(HttpConversionUtil.ExtensionHeaderNames.SCHEME.text(), HttpScheme.HTTP.name());
        return request;
    }

    /** Handlers for HTTP/2, which ignore streams that the server opens. */
    private ChannelInitializer<Channel> connection(CompletableFuture<String> answer) {
        return http2
                ? initializer(
                        Http2FrameCodecBuilder.forClient().build(),
                        new Http2MultiplexHandler(new ChannelInboundHandlerAdapter()))
                : initializer(new HttpClientCodec(), new HttpObjectAggregator(MAX_CONTENT_BYTES), completing(answer));
    }

    private static ChannelInitializer<Channel> initializer(ChannelHandler... handlers) {
        return new ChannelInitializer<>() {
            @Override
            protected void initChannel(Channel channel) {
                channel.pipeline().addLast(handlers);
            }
        };
    }

    private static ChannelHandler completing(CompletableFuture<String> answer) {
        return new SimpleChannelInboundHandler<FullHttpResponse>() {
            @Override
            protected void channelRead0(ChannelHandlerContext context, FullHttpResponse response) {
                answer.complete(response.content().toString(StandardCharsets.UTF_8));
            }

            @Override
            public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
                answer.completeExceptionally(cause);
                context.close();
            }
        };
    }
}
