package org.verbena.testing;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * What goes wrong with the connections to a server of the {@linkplain InProcessProvider provider for tests}, at the
 * test's command and at no other time. It applies to the connections that there are, and to those that are made later,
 * until it is taken back or {@link #close} takes back everything.
 *
 * <pre>{@code
 * try (Faults faults = Faults.at(server.port())) {
 *     faults.drop();                               // all connections are lost
 *     faults.silence(Faults.Direction.TO_CLIENT);  // requests arrive, and no reply does
 * }
 * }</pre>
 *
 * <p>A <em>delivery</em> is what one end gives to its provider at once: a frame of the message protocol, which has one
 * message, a part of a long one, or several short ones; a read or write of memory; the answer to a read. What the
 * protocol sends for itself, such as credits and keepalives, are deliveries, too.
 *
 * <p>Faults change no time: timeouts and keepalive are what end a silence, unless the test does. They go by the
 * machine's clock, or by a {@link TestTime}, which the test moves. All methods may be called on any thread.
 */
public final class Faults implements AutoCloseable {
    /** The way of a delivery. */
    public enum Direction {
        /** From a client to the server. */
        TO_SERVER,
        /** From the server to a client. */
        TO_CLIENT
    }

    private static final Map<Integer, Faults> BY_PORT = new ConcurrentHashMap<>();

    private final int port;

    // All of it guarded by this.
    private final Set<Connection> connections = new LinkedHashSet<>();
    private final Set<Direction> silent = EnumSet.noneOf(Direction.class);
    private final List<Runnable> attempts = new ArrayList<>();
    private final Map<Direction, Integer> heldBack = new EnumMap<>(Direction.class);
    private boolean refusing;

    private Faults(int port) {
        this.port = port;
    }

    /**
     * The faults of a server's connections. The server need not be there yet, and may be closed and bound again.
     *
     * @param port the server's, 1 to 65535
     * @return always the same for one port
     * @throws IllegalArgumentException it is no port
     */
    public static Faults at(int port) {
        if (port < 1 || port > 0xffff) {
            throw new IllegalArgumentException("port " + port + " is not within 1 to 65535");
        }
        return BY_PORT.computeIfAbsent(port, Faults::new);
    }

    /** The faults of a port; null if nobody has asked for them, and no connection was made. */
    static @Nullable Faults find(int port) {
        return BY_PORT.get(port);
    }

    /**
     * Loses all connections that there are now, without a word: what is on its way arrives nowhere, and both ends learn
     * at once that the connection is lost, with {@link org.verbena.transport.ConnectionException.Lost}.
     *
     * @return how many there were
     */
    public int drop() {
        List<Connection> lost;
        synchronized (this) {
            lost = List.copyOf(connections);
        }
        for (Connection each : lost) {
            each.toServer().cut();
            each.toClient().cut();
            each.client().dropped();
            each.server().dropped();
        }
        return lost.size();
    }

    /**
     * Refuses connections as if nobody listened at the port, or takes that back. Those that there are stay.
     *
     * @param refuses whether to refuse
     */
    public synchronized void refuse(boolean refuses) {
        refusing = refuses;
    }

    /**
     * Lets nothing arrive in one direction, and nobody learns of it, as when a cable is cut: an end that sends goes on
     * until too much is on its way. Nothing is lost. Attempts to connect wait for the end of the silence, in both
     * directions, until their timeouts.
     *
     * @param direction which one; call it twice for both
     */
    public synchronized void silence(Direction direction) {
        silent.add(direction);
        applyToAll();
    }

    /**
     * Ends the silence: what was sent meanwhile arrives, in its order.
     *
     * @param direction which one
     */
    public synchronized void resume(Direction direction) {
        silent.remove(direction);
        applyToAll();
    }

    /**
     * Delays what is sent: a delivery arrives only when so many more have been sent behind it on its connection, or
     * when its sender has ended the connection. Without further ones it does not arrive.
     *
     * @param direction which one
     * @param deliveries 0 for no delay
     * @throws IllegalArgumentException it is negative
     */
    public synchronized void holdBack(Direction direction, int deliveries) {
        if (deliveries < 0) {
            throw new IllegalArgumentException("a delay of " + deliveries + " deliveries is negative");
        }
        heldBack.put(direction, deliveries);
        applyToAll();
    }

    /**
     * Returns how many connections there are.
     *
     * @return a snapshot
     */
    public synchronized int connections() {
        return connections.size();
    }

    /** Takes all faults back. Connections that were lost stay so. They may be set again afterwards. */
    @Override
    public synchronized void close() {
        refusing = false;
        silent.clear();
        heldBack.clear();
        applyToAll();
    }

    private void applyToAll() {
        connections.forEach(this::apply);
        if (silent.isEmpty()) {
            attempts.forEach(Runnable::run);
            attempts.clear();
        }
    }

    private void apply(Connection connection) {
        connection
                .toServer()
                .setFaults(silent.contains(Direction.TO_SERVER), heldBack.getOrDefault(Direction.TO_SERVER, 0));
        connection
                .toClient()
                .setFaults(silent.contains(Direction.TO_CLIENT), heldBack.getOrDefault(Direction.TO_CLIENT, 0));
    }

    synchronized boolean isRefusing() {
        return refusing;
    }

    /**
     * Delays an attempt to connect.
     *
     * @param attempt schedules the attempt, when the silence is over
     * @return false if there is no silence
     */
    synchronized boolean delaysUntilResumed(Runnable attempt) {
        return !silent.isEmpty() && attempts.add(attempt);
    }

    synchronized void add(Connection connection) {
        connections.add(connection);
        apply(connection);
    }

    synchronized void remove(Connection connection) {
        connections.remove(connection);
    }

    @Override
    public String toString() {
        return "faults of the port " + port;
    }
}
