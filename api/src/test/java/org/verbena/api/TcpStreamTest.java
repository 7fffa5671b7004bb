package org.verbena.api;

import io.netty.channel.Channel;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.ServerChannel;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;

/** The stream suite on Netty's own sockets, which shows that it demands what sockets do. */
class TcpStreamTest extends StreamSuite {
    @Override
    protected EventLoopGroup newGroup() {
        return new MultiThreadIoEventLoopGroup(3, NioIoHandler.newFactory());
    }

    @Override
    protected Class<? extends Channel> channelClass() {
        return NioSocketChannel.class;
    }

    @Override
    protected Class<? extends ServerChannel> serverChannelClass() {
        return NioServerSocketChannel.class;
    }
}
