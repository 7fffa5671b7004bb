package org.verbena.samples.http;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpServerUpgradeHandler;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http2.CleartextHttp2ServerUpgradeHandler;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2StreamFrameToHttpObjectCodec;
import io.netty.handler.codec.http2.HttpConversionUtil;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.ServerSignals;
import org.verbena.samples.command.TransportOption;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** An HTTP server over RDMA or TCP: Netty's codecs as they are, and one handler for HTTP/1.1 and HTTP/2. */
@Command(name = "http-server", description = "Answers http-client, over HTTP/1.1 and HTTP/2.")
public final class HttpServer implements Callable<Integer> {
    private static final Logger LOG = LoggerFactory.getLogger(HttpServer.class);

    /** The longest request. */
    private static final int MAX_CONTENT_BYTES = 1 << 20;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private TransportOption transport;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        ServerSignals.endWithZero();
        EventLoopGroup group = transport.newGroup(options);
        try {
            Channel server = new ServerBootstrap()
                    .group(group)
                    .channel(transport.serverChannelClass())
                    .childHandler(new Protocols())
                    .bind(options.host, options.listenPort())
                    .sync()
                    .channel();
            PrintWriter out = spec.commandLine().getOut();
            out.println("http-server listens on " + server.localAddress() + " (" + TransportOption.name(group) + ")");
            out.flush();
            server.closeFuture().sync();
        } finally {
            TransportOption.end(group);
        }
        return CommandLine.ExitCode.OK;
    }

    /** HTTP/2 if the connection begins as one, else HTTP/1.1. */
    private static final class Protocols extends ChannelInitializer<Channel> {
        @Override
        protected void initChannel(Channel channel) {
            ChannelHandler http2 = new ChannelInitializer<>() {
                @Override
                protected void initChannel(Channel connection) {
                    connection
                            .pipeline()
                            .addLast(
                                    Http2FrameCodecBuilder.forServer().build(),
                                    new Http2MultiplexHandler(new ChannelInitializer<>() {
                                        @Override
                                        protected void initChannel(Channel stream) {
                                            stream.pipeline()
                                                    .addLast(
                                                            new Http2StreamFrameToHttpObjectCodec(true),
                                                            new HttpObjectAggregator(MAX_CONTENT_BYTES),
                                                            new Answers());
                                        }
                                    }));
                }
            };
            HttpServerCodec http1 = new HttpServerCodec();
            channel.pipeline()
                    .addLast(
                            new CleartextHttp2ServerUpgradeHandler(
                                    http1, new HttpServerUpgradeHandler(http1, protocol -> null), http2),
                            new HttpObjectAggregator(MAX_CONTENT_BYTES),
                            new Answers());
        }
    }

    /**
     * GET returns a greeting, POST sends back the content. The handler is independent of the version of HTTP and of the
     * transport.
     */
    private static final class Answers extends SimpleChannelInboundHandler<FullHttpRequest> {
        @Override
        protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
            ByteBuf content = request.content().isReadable()
                    ? request.content().retain()
                    : ByteBufUtil.writeUtf8(context.alloc(), "Hello from " + request.uri() + "\n");
            FullHttpResponse response =
                    new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK, content);
            response.headers()
                    .set(HttpHeaderNames.CONTENT_TYPE, HttpHeaderValues.TEXT_PLAIN)
                    .setInt(HttpHeaderNames.CONTENT_LENGTH, content.readableBytes());
            String stream = request.headers().get(HttpConversionUtil.ExtensionHeaderNames.STREAM_ID.text());
            if (stream != null) {
                response.headers().set(HttpConversionUtil.ExtensionHeaderNames.STREAM_ID.text(), stream);
            }
            boolean keep = HttpUtil.isKeepAlive(request);
            var written = context.writeAndFlush(response);
            if (!keep) {
                written.addListener(done -> context.close());
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
            LOG.warn("{}: {}", context.channel(), cause.getMessage());
            context.close();
        }
    }
}
