package org.verbena.api.datagram;

import io.netty.channel.AbstractChannel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelPromise;
import io.netty.channel.socket.DatagramChannel;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Reduces Netty's many forms of joining, leaving and filtering a multicast group to three. Any thread. */
abstract class AbstractDatagramChannel extends AbstractChannel implements DatagramChannel {

    AbstractDatagramChannel() {
        super(null);
    }

    @Override
    public abstract @Nullable InetSocketAddress localAddress();

    @Override
    public abstract @Nullable InetSocketAddress remoteAddress();

    /**
     * Joins a group; the promise has the outcome.
     *
     * @param group its address
     * @param networkInterface of the device; null for the one that the channel is bound to
     * @param source whose datagrams are wanted; null for all
     * @return the promise
     */
    abstract ChannelFuture join(
            InetAddress group,
            @Nullable NetworkInterface networkInterface,
            @Nullable InetAddress source,
            ChannelPromise promise);

    /** Leaves a group, or a source of it: as {@link #join}. */
    abstract ChannelFuture leave(
            InetAddress group,
            @Nullable NetworkInterface networkInterface,
            @Nullable InetAddress source,
            ChannelPromise promise);

    /** Drops datagrams of a source to a group that was joined: as {@link #join}. */
    abstract ChannelFuture drop(
            InetAddress group, @Nullable NetworkInterface networkInterface, InetAddress source, ChannelPromise promise);

    @Override
    public ChannelFuture joinGroup(InetAddress multicastAddress) {
        return joinGroup(multicastAddress, newPromise());
    }

    @Override
    public ChannelFuture joinGroup(InetAddress multicastAddress, ChannelPromise promise) {
        return join(multicastAddress, null, null, promise);
    }

    @Override
    public ChannelFuture joinGroup(InetSocketAddress multicastAddress, @Nullable NetworkInterface networkInterface) {
        return joinGroup(multicastAddress, networkInterface, newPromise());
    }

    @Override
    public ChannelFuture joinGroup(
            InetSocketAddress multicastAddress, @Nullable NetworkInterface networkInterface, ChannelPromise promise) {
        return join(multicastAddress.getAddress(), networkInterface, null, promise);
    }

    @Override
    public ChannelFuture joinGroup(
            InetAddress multicastAddress, @Nullable NetworkInterface networkInterface, @Nullable InetAddress source) {
        return joinGroup(multicastAddress, networkInterface, source, newPromise());
    }

    /** Joins; with a source, the channel drops datagrams of other sources to the group. */
    @Override
    public ChannelFuture joinGroup(
            InetAddress multicastAddress,
            @Nullable NetworkInterface networkInterface,
            @Nullable InetAddress source,
            ChannelPromise promise) {
        return join(multicastAddress, networkInterface, source, promise);
    }

    @Override
    public ChannelFuture leaveGroup(InetAddress multicastAddress) {
        return leaveGroup(multicastAddress, newPromise());
    }

    @Override
    public ChannelFuture leaveGroup(InetAddress multicastAddress, ChannelPromise promise) {
        return leave(multicastAddress, null, null, promise);
    }

    @Override
    public ChannelFuture leaveGroup(InetSocketAddress multicastAddress, @Nullable NetworkInterface networkInterface) {
        return leaveGroup(multicastAddress, networkInterface, newPromise());
    }

    @Override
    public ChannelFuture leaveGroup(
            InetSocketAddress multicastAddress, @Nullable NetworkInterface networkInterface, ChannelPromise promise) {
        return leave(multicastAddress.getAddress(), networkInterface, null, promise);
    }

    @Override
    public ChannelFuture leaveGroup(
            InetAddress multicastAddress, @Nullable NetworkInterface networkInterface, @Nullable InetAddress source) {
        return leaveGroup(multicastAddress, networkInterface, source, newPromise());
    }

    @Override
    public ChannelFuture leaveGroup(
            InetAddress multicastAddress,
            @Nullable NetworkInterface networkInterface,
            @Nullable InetAddress source,
            ChannelPromise promise) {
        return leave(multicastAddress, networkInterface, source, promise);
    }

    @Override
    public ChannelFuture block(
            InetAddress multicastAddress, @Nullable NetworkInterface networkInterface, InetAddress sourceToBlock) {
        return block(multicastAddress, networkInterface, sourceToBlock, newPromise());
    }

    /** Makes the channel drop datagrams of a source to a group that it has joined. */
    @Override
    public ChannelFuture block(
            InetAddress multicastAddress,
            @Nullable NetworkInterface networkInterface,
            InetAddress sourceToBlock,
            ChannelPromise promise) {
        return drop(
                multicastAddress, networkInterface, Objects.requireNonNull(sourceToBlock, "sourceToBlock"), promise);
    }

    @Override
    public ChannelFuture block(InetAddress multicastAddress, InetAddress sourceToBlock) {
        return block(multicastAddress, sourceToBlock, newPromise());
    }

    @Override
    public ChannelFuture block(InetAddress multicastAddress, InetAddress sourceToBlock, ChannelPromise promise) {
        return block(multicastAddress, null, sourceToBlock, promise);
    }
}
