package org.verbena.transport.protocol.connection;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.MessageOptions;
import org.verbena.transport.protocol.PrivateData;
import org.verbena.transport.protocol.Role;
import org.verbena.transport.protocol.TransferBudget;
import org.verbena.transport.protocol.connection.SimulatedNetwork.Device;

/**
 * Connections between two processes, each with one device and one loop: the ends of a side share memory and, if the
 * device has one, a receive queue.
 */
final class Crowd {
    final List<SimulatedNetwork> networks = new ArrayList<>();
    final List<Party> lefts = new ArrayList<>();
    final List<Party> rights = new ArrayList<>();
    /** The number of the first connection that is not stopped. */
    private int running;

    private final Random random;
    private final Device leftDevice;
    private final Device rightDevice;
    private final MessageOptions options;
    private final long leftPoolBytes;
    private final long rightPoolBytes;

    /** The turns of the right side's transfers; null for none. */
    @Nullable TransferBudget rightBudget;

    Crowd(
            Random random,
            Device leftDevice,
            Device rightDevice,
            MessageOptions options,
            long leftPoolBytes,
            long rightPoolBytes) {
        this.random = random;
        this.leftDevice = leftDevice;
        this.rightDevice = rightDevice;
        this.options = options;
        this.leftPoolBytes = leftPoolBytes;
        this.rightPoolBytes = rightPoolBytes;
    }

    /** One more connection; it comes up as a step. Returns its left end. */
    Party add() {
        return add(InetAddress.getLoopbackAddress());
    }

    /** One more connection, whose left end has this address. */
    Party add(InetAddress leftAddress) {
        int number = networks.size();
        boolean first = number == 0;
        SimulatedNetwork network =
                new SimulatedNetwork(random, leftDevice, rightDevice, first ? null : networks.getFirst());
        network.left.address = new InetSocketAddress(leftAddress, network.left.address.getPort());
        Party left = first
                ? Party.of("left0", Role.INITIATOR, network.left, options, leftPoolBytes)
                : new Party("left" + number, Role.INITIATOR, network.left, lefts.getFirst());
        Party right = first
                ? Party.of("right0", Role.ACCEPTOR, network.right, options, rightPoolBytes)
                : new Party("right" + number, Role.ACCEPTOR, network.right, rights.getFirst());
        left.other = right;
        right.other = left;
        networks.add(network);
        lefts.add(left);
        rights.add(right);
        TransferBudget budget = rightBudget;
        if (budget != null) {
            right.connection.limitTransfers(domain -> budget);
        }
        byte[] data = PrivateData.of(options);
        network.connect(left.connection, data, right.connection, data);
        return left;
    }

    /** Nothing happens any more on the connections that there are, as if the processes of their left ends stopped. */
    void stopAll() {
        running = networks.size();
    }

    /** Until nothing can happen anywhere. */
    void settle() {
        boolean moved = true;
        while (moved) {
            moved = false;
            for (SimulatedNetwork one : networks.subList(running, networks.size())) {
                while (one.step()) {
                    moved = true;
                }
            }
        }
    }

    /** Lets time pass, and calls connections whose deadline has come. */
    void pass(long millis) {
        for (long i = 0; i < millis; i++) {
            for (SimulatedNetwork network : networks) {
                network.nowNanos += TimeUnit.MILLISECONDS.toNanos(1);
            }
            lefts.forEach(Party::tick);
            rights.forEach(Party::tick);
            settle();
        }
    }

    /** All left ends close; then all memory must be free. */
    void close() throws Exception {
        lefts.forEach(party -> party.connection.close());
        settle();
        for (List<Party> side : List.of(lefts, rights)) {
            for (Party party : side) {
                party.releaseKept(Integer.MAX_VALUE);
            }
            settle();
            side.getFirst().checkMemory();
        }
    }
}
