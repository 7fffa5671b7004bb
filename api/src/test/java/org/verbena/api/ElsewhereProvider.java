package org.verbena.api;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import java.util.function.UnaryOperator;
import org.verbena.transport.soft.SoftOptions;
import org.verbena.transport.soft.SoftProvider;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;

/**
 * A second provider: soft, which listens at another address than it is told, so that its ports are not those of the
 * first, as those of RoCE are not TCP's.
 */
final class ElsewhereProvider extends DelegatingProvider {
    private final UnaryOperator<InetSocketAddress> where;

    ElsewhereProvider(UnaryOperator<InetSocketAddress> where) {
        super(new SoftProvider(SoftOptions.ofSystemProperties()));
        this.where = where;
    }

    @Override
    public String name() {
        return "elsewhere";
    }

    @Override
    public int rank() {
        return 2000;
    }

    @Override
    public String description() {
        return "soft at another address";
    }

    @Override
    public Listener listen(
            IoEventLoop loop, InetSocketAddress localAddress, ListenOptions options, ListenerHandler handler) {
        return super.listen(loop, where.apply(localAddress), options, handler);
    }
}
