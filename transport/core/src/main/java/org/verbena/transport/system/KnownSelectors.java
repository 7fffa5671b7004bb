package org.verbena.transport.system;

import java.io.IOException;
import java.net.ProtocolFamily;
import java.nio.channels.DatagramChannel;
import java.nio.channels.Pipe;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.AbstractSelector;
import java.nio.channels.spi.SelectorProvider;

/** The JDK's provider of selectors and channels, which reports each selector that Netty opens with it. */
public final class KnownSelectors extends SelectorProvider {
    /** Gets the selectors. */
    @FunctionalInterface
    public interface Opened {
        /**
         * A selector is open, and is returned next.
         *
         * @param selector that nobody uses yet
         * @throws IOException it is not wanted, and is closed
         */
        void accept(Selector selector) throws IOException;
    }

    private final SelectorProvider usual = SelectorProvider.provider();
    private final Opened opened;

    /**
     * Reports selectors.
     *
     * @param opened gets each
     */
    public KnownSelectors(Opened opened) {
        this.opened = opened;
    }

    @Override
    public AbstractSelector openSelector() throws IOException {
        AbstractSelector made = usual.openSelector();
        try {
            opened.accept(made);
            return made;
        } catch (IOException | RuntimeException | Error refused) {
            made.close();
            throw refused;
        }
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
