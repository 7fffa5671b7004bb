package org.verbena.transport.soft;

import java.io.IOException;
import java.net.ProtocolFamily;
import java.nio.channels.DatagramChannel;
import java.nio.channels.Pipe;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.AbstractSelector;
import java.nio.channels.spi.SelectorProvider;
import org.jspecify.annotations.Nullable;

/** The JDK's provider of selectors, for one of them, which is known then: a ring waits for it. */
final class OneSelector extends SelectorProvider {
    private final SelectorProvider usual = SelectorProvider.provider();
    private @Nullable AbstractSelector opened;

    Selector opened() {
        AbstractSelector now = opened;
        if (now == null) {
            throw new IllegalStateException("no selector was opened");
        }
        return now;
    }

    @Override
    public AbstractSelector openSelector() throws IOException {
        if (opened != null) {
            throw new IOException("a ring waits for the selector that is there");
        }
        AbstractSelector made = usual.openSelector();
        opened = made;
        return made;
    }

    @Override
    public DatagramChannel openDatagramChannel() throws IOException {
        return usual.openDatagramChannel();
    }

    @Override
    public DatagramChannel openDatagramChannel(ProtocolFamily family) throws IOException {
        return usual.openDatagramChannel(family);
    }

    @Override
    public Pipe openPipe() throws IOException {
        return usual.openPipe();
    }

    @Override
    public ServerSocketChannel openServerSocketChannel() throws IOException {
        return usual.openServerSocketChannel();
    }

    @Override
    public SocketChannel openSocketChannel() throws IOException {
        return usual.openSocketChannel();
    }
}
