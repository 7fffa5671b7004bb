package org.verbena.api.internal.server;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.loop.LoopGroup;
import org.verbena.api.internal.stat.ProviderAccount;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.provider.ProviderSet;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;

/**
 * The listeners of a server channel, one for each provider, on one address and port. They are opened one after another:
 * the first takes the port, and the others the same number. If the number was any free one and another listener cannot
 * bind it, all are closed, and all try another number.
 *
 * <pre>{@code
 * BINDING --the last listens, or is left out--> LISTENING --close0--> CLOSING --all closed--> CLOSED
 *   | ^  |                                                                ^
 *   | |  +---- one that is required cannot listen, or none can ----------+
 *   v | all closed
 * RETRYING
 * }</pre>
 *
 * <p>A listener of another provider lives on a loop of that provider; its events are forwarded here. Event loop only.
 */
public final class PortListeners {
    private static final Logger LOG = LoggerFactory.getLogger(PortListeners.class);

    /** The answer to a request that comes too late. */
    public static final byte[] CLOSING = "the server is closing".getBytes(StandardCharsets.US_ASCII);

    /**
     * How many numbers are tried if any free one will do. Two port spaces rarely collide even once; with an iWARP
     * device no number works, since it occupies the TCP port itself.
     */
    private static final int MAX_NUMBERS = 8;

    private final IoEventLoop loop;
    private final ProviderSet providers;
    private final ListenOptions options;
    private final InetSocketAddress wanted;
    private final Owner owner;

    /** Starting, listening or closing. */
    private final List<One> open = new ArrayList<>();

    private Phase phase = Phase.BINDING;
    private @Nullable InetSocketAddress bound;
    private @Nullable Throwable failure;
    private int next;
    private int numbers = 1;

    private enum Phase {
        BINDING,
        RETRYING,
        LISTENING,
        CLOSING,
        CLOSED
    }

    /** The server channel. */
    public interface Owner {
        /** All listeners that can listen do so. */
        void onListening0(InetSocketAddress address);

        /** A peer wants to connect. */
        void onArrival0(Arrival arrival);

        /** One listener has ended, and others have not. */
        void onLost0(Throwable cause);

        /** All have ended: after {@link #close0()}, or with a cause. Called exactly once. */
        void onClosed0(@Nullable Throwable cause);
    }

    public PortListeners(
            IoEventLoop loop, ProviderSet providers, ListenOptions options, InetSocketAddress wanted, Owner owner) {
        this.loop = loop;
        this.providers = providers;
        this.options = options;
        this.wanted = wanted;
        this.owner = owner;
    }

    /** Opens them. */
    public void begin0() {
        assert loop.inEventLoop();
        phase = Phase.BINDING;
        next = 0;
        bound = null;
        openNext0();
    }

    /** The names of the providers that listen. */
    public List<String> names0() {
        return open.stream()
                .filter(one -> one.listens)
                .map(one -> one.choice.provider().name())
                .toList();
    }

    private void openNext0() {
        while (next < providers.choices().size()) {
            ProviderChoice choice = providers.choices().get(next);
            next++;
            InetSocketAddress taken = bound;
            InetSocketAddress at = taken == null ? wanted : new InetSocketAddress(wanted.getAddress(), taken.getPort());
            if (isOptional(choice) && !choice.provider().serves(at)) {
                LOG.info(
                        "{} does not serve {}: the server listens without it",
                        choice.provider().name(),
                        at);
                continue;
            }
            One one = new One(choice, at);
            open.add(one);
            one.open0();
            return; // the listener reports the outcome
        }
        InetSocketAddress taken = bound;
        if (taken == null) {
            end0(failure != null ? failure : nothingServes());
        } else {
            phase = Phase.LISTENING;
            owner.onListening0(taken);
        }
    }

    private boolean isOptional(ProviderChoice choice) {
        return !providers.isRequired(choice) && providers.choices().size() > 1;
    }

    private ConnectionException nothingServes() {
        return new ConnectionException.Unreachable(
                "listen on " + wanted + ": none of " + providers.names() + " serves the address");
    }

    /** A provider cannot listen. */
    private void failed0(One one, Throwable cause) {
        ProviderAccount.of(one.choice.provider()).listenFailed();
        if (wanted.getPort() == 0 && bound != null && numbers < MAX_NUMBERS) {
            LOG.debug(
                    "{} cannot listen on {}; trying another port",
                    one.choice.provider().name(),
                    one.address,
                    cause);
            numbers++;
            phase = Phase.RETRYING;
            closeAll0();
            return;
        }
        if (!isOptional(one.choice)) {
            end0(cause);
            return;
        }
        if (failure == null) {
            failure = cause;
        }
        if (bound != null || next < providers.choices().size()) {
            LOG.warn(
                    "{} cannot listen on {}; the server continues without it, because it is optional: {}",
                    one.choice.provider().name(),
                    one.address,
                    cause.getMessage());
        }
        openNext0();
    }

    /** Closes all, which {@link Owner#onClosed0} reports. */
    public void close0() {
        if (phase != Phase.CLOSED) {
            end0(null);
        }
    }

    /** Whether {@link Owner#onClosed0} is yet to come. */
    public boolean isOpen0() {
        return phase != Phase.CLOSED;
    }

    private void end0(@Nullable Throwable cause) {
        if (phase != Phase.CLOSING) {
            phase = Phase.CLOSING;
            failure = cause;
        }
        closeAll0();
    }

    private void closeAll0() {
        List.copyOf(open).forEach(One::close0);
        ifAllClosed0();
    }

    private void ifAllClosed0() {
        if (!open.isEmpty()) {
            return;
        }
        if (phase == Phase.RETRYING) {
            begin0();
        } else if (phase == Phase.CLOSING) {
            phase = Phase.CLOSED;
            owner.onClosed0(failure);
        }
    }

    private void closed0(One one, @Nullable Throwable cause) {
        if (!open.remove(one)) {
            return;
        }
        if (phase == Phase.CLOSING || phase == Phase.RETRYING) {
            ifAllClosed0();
            return;
        }
        Throwable why = cause != null
                ? cause
                : new ConnectionException.Unreachable("listen on " + one.address + ": the listener of "
                        + one.choice.provider().name() + " was closed before it listened");
        if (!one.listens) {
            failed0(one, why);
        } else if (open.isEmpty()) {
            end0(cause);
        } else if (cause != null) {
            LOG.warn(
                    "{} no longer listens on {}; the server continues with {}: {}",
                    one.choice.provider().name(),
                    one.address,
                    names0(),
                    cause.getMessage());
            owner.onLost0(cause);
        }
    }

    /** One provider's listener. Its callbacks run on its own loop. */
    private final class One implements ListenerHandler {
        private final ProviderChoice choice;
        private final InetSocketAddress address;
        private @Nullable Listener listener;
        private boolean listens;

        One(ProviderChoice choice, InetSocketAddress address) {
            this.choice = choice;
            this.address = address;
        }

        void open0() {
            try {
                IoEventLoop own = LoopGroup.loopFor(loop, choice.provider());
                if (own == null) {
                    throw new IllegalStateException(
                            "no event loop of provider " + choice.provider().name() + " in the server's group");
                }
                ListenOptions mine = choice.provider().takesPlainTcp()
                        ? options
                        : new ListenOptions(options.backlog(), options.reuseAddress());
                listener = choice.provider().listen(own, address, mine, this);
            } catch (RuntimeException cause) {
                open.remove(this);
                failed0(this, cause);
            }
        }

        void close0() {
            Listener opened = listener;
            if (opened != null) {
                opened.close();
            }
        }

        /** Runs an event on the server's loop; if that has ended, runs the alternative. */
        private void bring(Runnable event, Runnable otherwise) {
            if (loop.inEventLoop()) {
                event.run();
                return;
            }
            try {
                loop.execute(event);
            } catch (RejectedExecutionException ended) {
                LOG.debug("the loop of the server on {} has ended", address, ended);
                otherwise.run();
            }
        }

        @Override
        public void onListening(Listener ready) {
            bring(() -> listening0(ready), ready::close);
        }

        private void listening0(Listener ready) {
            if (phase != Phase.BINDING) {
                ready.close();
                return;
            }
            listens = true;
            if (bound == null) {
                bound = ready.localAddress();
            }
            openNext0();
        }

        @Override
        public void onConnectRequest(Listener from, IncomingConnection connection) {
            arrived(new Arrival.Rdma(choice.provider(), connection));
        }

        @Override
        public void onPlainConnection(Listener from, SocketChannel channel, ByteBuffer firstBytes) {
            arrived(new Arrival.Plain(choice.provider(), channel, firstBytes));
        }

        private void arrived(Arrival arrival) {
            bring(() -> owner.onArrival0(arrival), () -> arrival.reject(CLOSING));
        }

        @Override
        public void onClosed(Listener gone, @Nullable Throwable cause) {
            bring(() -> closed0(this, cause), () -> {});
        }
    }
}
