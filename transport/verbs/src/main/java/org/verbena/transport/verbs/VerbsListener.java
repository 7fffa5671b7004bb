package org.verbena.transport.verbs;

import io.netty.channel.IoEventLoop;
import java.net.InetSocketAddress;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmException;
import org.verbena.cm.CmId;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;
import org.verbena.verbs.Context;
import org.verbena.verbs.NativeRdmaException;
import org.verbena.verbs.ffm.Errno;

/**
 * A listening id. Bound to an address of a device it moves to the loop of that device, which may block when it listens;
 * a wildcard listens on all devices, and stays on the common connection loop. What it accepts goes to the loop of its
 * device.
 *
 * <pre>{@code
 *               completion loop                            connection loop
 *
 *   NEW         start0 ---------------------------------->  create the id, bind, move, listen
 *   STARTING    listening0: onListening  <----------------
 *   LISTENING   requested0: onConnectRequest  <-----------  CONNECT_REQUEST
 *                                                          the device is gone, or another has the address: destroy
 *                                                          the id, then bind and listen again until that works
 *               close() ---------------------------------->  destroy the id
 *   CLOSING     closed0: onClosed  <----------------------
 *   CLOSED
 * }</pre>
 *
 * <p>What cannot listen goes from STARTING to CLOSED.
 */
final class VerbsListener implements Listener, VerbsHandle, CmEventSink {
    private static final Logger LOG = LoggerFactory.getLogger(VerbsListener.class);

    /** Another device of a bond is there at once; one that is reset comes back within seconds. */
    private static final long FIRST_RETRY_MILLIS = 100;

    private static final long LAST_RETRY_MILLIS = 10_000;

    private enum State {
        NEW,
        STARTING,
        LISTENING,
        CLOSING,
        CLOSED
    }

    private final VerbsProvider provider;
    private final IoEventLoop loop;
    private final InetSocketAddress requestedAddress;
    private final ListenOptions options;
    private final ListenerHandler listenerHandler;

    /** Written by the setup loop when it listens for the first time, read by any thread. */
    private volatile @Nullable InetSocketAddress localAddress;

    private final LoopMembership membership;
    private final SetupLoop setupLoop;

    // Confined to the loop's thread.
    private State state = State.NEW;

    // Confined to the setup loop.
    private @Nullable CmId id;
    private boolean isOver;
    private long retryMillis = FIRST_RETRY_MILLIS;

    VerbsListener(
            VerbsProvider provider,
            IoEventLoop loop,
            InetSocketAddress requestedAddress,
            ListenOptions options,
            ListenerHandler listenerHandler) {
        this.provider = provider;
        this.loop = loop;
        membership = new LoopMembership(this, loop);
        setupLoop = new SetupLoop(provider);
        this.requestedAddress = requestedAddress;
        this.options = options;
        this.listenerHandler = listenerHandler;
    }

    /** Listens; the handler gets the outcome. Any thread. */
    void start() {
        loop.execute(this::start0);
    }

    private void start0() {
        try {
            membership.join0();
            if (state != State.NEW) {
                closed0(null);
                return;
            }
            state = State.STARTING;
            setupLoop.execute(this::bind);
        } catch (Throwable unavailable) {
            closed0(failureOf(NativeFailures.unchecked(unavailable)));
        }
    }

    /** Runs something on the loop, also while that ends. */
    private void execute(Runnable task) {
        membership.execute(task);
    }

    private ConnectionException failureOf(RuntimeException refused) {
        RuntimeException why = refused;
        if (refused instanceof CmException cm && cm.errno() == Errno.ENODEV) {
            NativeRdmaException unopened = VerbsProvider.openFailure();
            why = unopened == null ? refused : unopened;
        }
        return new ConnectionException(
                "cannot listen on " + VerbsProvider.format(requestedAddress) + ": " + why.getMessage(), why);
    }

    private void bind() {
        if (isOver) {
            return;
        }
        try {
            CmId bound = provider.connectionLoop().newId(this);
            id = bound;
            bound.setReuseAddress(options.reuseAddress());
            InetSocketAddress before = localAddress;
            bound.bind(before == null ? requestedAddress : before);
            Context device = bound.device();
            if (device != null) {
                provider.devices().checkPresent(device); // one that is lost must not be held
            }
            provider.devices().add(this);
            if (device != null) {
                setupLoop.moveTo(device, bound);
            }
            setupLoop.execute(() -> listen(bound));
        } catch (Throwable refused) {
            cannotListen(NativeFailures.unchecked(refused));
        }
    }

    private void listen(CmId bound) {
        if (bound.isClosed()) {
            return;
        }
        try {
            bound.listen(options.backlog());
            retryMillis = FIRST_RETRY_MILLIS;
            if (localAddress == null) {
                localAddress = bound.localAddress();
                execute(this::listening0);
            } else {
                LOG.info("{} listens again", this);
            }
        } catch (Throwable refused) {
            cannotListen(NativeFailures.unchecked(refused));
        }
    }

    private void cannotListen(RuntimeException refused) {
        destroyId();
        if (localAddress == null) {
            execute(() -> closed0(failureOf(refused)));
        } else {
            LOG.debug("{}: next try in {} ms", this, retryMillis, refused);
            bindLater();
        }
    }

    private void bindLater() {
        long millis = retryMillis;
        retryMillis = Math.min(2 * millis, LAST_RETRY_MILLIS);
        setupLoop.loop().loop().schedule(() -> setupLoop.execute(this::bind), millis, TimeUnit.MILLISECONDS);
    }

    /** What it listened on is not there any more. Any thread; the id is not destroyed within an event of it. */
    private void listenAgain(CmId gone, String why) {
        setupLoop.execute(() -> {
            if (id == gone && !gone.isClosed() && !isOver) {
                LOG.warn("{} binds its address again, since {}", this, why);
                destroyId();
                bindLater();
            }
        });
    }

    private void listening0() {
        if (state != State.STARTING) {
            return;
        }
        state = State.LISTENING;
        try {
            listenerHandler.onListening(this);
        } catch (Throwable thrown) {
            end0(thrown);
        }
    }

    @Override
    public InetSocketAddress localAddress() {
        InetSocketAddress known = localAddress;
        if (known == null) {
            throw new IllegalStateException("the listener for " + VerbsProvider.format(requestedAddress)
                    + " does not listen yet: wait for onListening");
        }
        return known;
    }

    @Override
    public void close() {
        try {
            loop.execute(this::close0);
        } catch (RejectedExecutionException ended) {
            LOG.trace("Closed with its loop", ended);
        }
    }

    private void close0() {
        if (state == State.NEW) {
            // start0 comes behind this task only if the loop ends meanwhile; it finds the state.
            state = State.CLOSING;
        } else {
            end0(null);
        }
    }

    @Override
    public void destroy() {
        close0();
    }

    @Override
    public void abandon() {
        closed0(null);
    }

    private void end0(@Nullable Throwable cause) {
        if (state == State.STARTING || state == State.LISTENING) {
            state = State.CLOSING;
            setupLoop.execute(() -> {
                isOver = true;
                destroyId();
                execute(() -> closed0(cause));
            });
        }
    }

    /** On the setup loop: it waits for events of the id that are being handled. */
    private void destroyId() {
        provider.devices().remove(this);
        CmId known = id;
        if (known != null) {
            try {
                known.close();
            } catch (Throwable failure) {
                LOG.warn(
                        "The listening id for {} could not be destroyed",
                        VerbsProvider.format(requestedAddress),
                        failure);
            }
        }
    }

    private void closed0(@Nullable Throwable cause) {
        if (state == State.CLOSED) {
            return;
        }
        state = State.CLOSED;
        membership.leave0();
        try {
            listenerHandler.onClosed(this, cause);
        } catch (Throwable thrown) {
            LOG.warn("onClosed threw", thrown);
        }
    }

    /** On the loop of the id's channel, which may not be the setup loop yet. */
    @Override
    public void onCmEvent(CmEvent event) {
        switch (event.type()) {
            case CONNECT_REQUEST -> {
                VerbsIncomingConnection request = new VerbsIncomingConnection(provider, event);
                try {
                    loop.execute(() -> requested0(request));
                } catch (RejectedExecutionException | OutOfMemoryError never) {
                    request.turnAway();
                }
            }
            case DEVICE_REMOVAL -> {
                listenAgain(event.id(), "its device " + VerbsDevice.REMOVED);
                provider.devices().findRemoved();
            }
            // A bond has failed over: the id stays on the device that has gone (core/cma.c, cma_netdev_change).
            case ADDR_CHANGE -> listenAgain(event.id(), "the network address of its device changed");
            default -> LOG.debug("Listener on {}: {}", VerbsProvider.format(requestedAddress), event.describe());
        }
    }

    /** A device is gone or unusable. Any thread. */
    void onDeviceLost(Context device, String what) {
        setupLoop.execute(() -> {
            CmId known = id;
            if (known != null && !known.isClosed() && known.device() == device) {
                listenAgain(known, "its device " + what);
            }
        });
    }

    private void requested0(VerbsIncomingConnection request) {
        if (state != State.LISTENING) {
            request.turnAway();
            return;
        }
        try {
            listenerHandler.onConnectRequest(this, request);
        } catch (Throwable thrown) {
            LOG.warn("onConnectRequest threw; the request of {} is rejected", request.remoteAddress(), thrown);
            request.turnAway();
        }
    }

    @Override
    public String toString() {
        InetSocketAddress known = localAddress;
        return "the listener on " + VerbsProvider.format(known == null ? requestedAddress : known);
    }
}
