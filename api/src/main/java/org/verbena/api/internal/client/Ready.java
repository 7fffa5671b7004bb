package org.verbena.api.internal.client;

import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;
import java.util.random.RandomGenerator;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.request.ClientTransport;
import org.verbena.transport.spi.LoopClock;

/** The connections of a client that are up, and how one is chosen among them. Does not change. Any thread. */
@SuppressWarnings("ReferenceEquality") // a transport is this one or another
final class Ready {
    static final Ready NONE = new Ready(List.of(), List.of(), LoopClock.system());

    private final ClientTransport[] transports;

    /** Of their addresses, which are the same in all clients. */
    private final long[] hashes;

    private final LoopClock clock;

    Ready(List<ClientTransport> transports, List<SocketAddress> addresses, LoopClock clock) {
        this.clock = clock;
        this.transports = transports.toArray(ClientTransport[]::new);
        hashes = addresses.stream().mapToLong(Ready::hash).toArray();
    }

    private static long hash(SocketAddress address) {
        if (!(address instanceof InetSocketAddress internet) || internet.isUnresolved()) {
            return address.hashCode();
        }
        long hash = internet.getPort();
        for (byte each : internet.getAddress().getAddress()) {
            hash = mix(hash * 31 + each);
        }
        return hash;
    }

    /** The finisher of SplitMix64: each bit of the result depends on all. */
    private static long mix(long value) {
        long mixed = (value ^ value >>> 30) * 0xbf58476d1ce4e5b9L;
        mixed = (mixed ^ mixed >>> 27) * 0x94d049bb133111ebL;
        return mixed ^ mixed >>> 31;
    }

    boolean isEmpty() {
        return transports.length == 0;
    }

    boolean isWritable() {
        for (ClientTransport transport : transports) {
            if (transport.isWritable()) {
                return true;
            }
        }
        return false;
    }

    /** The less loaded of two; null if there is none. */
    @Nullable ClientTransport pick() {
        return switch (transports.length) {
            case 0 -> null;
            case 1 -> transports[0];
            default -> lessLoaded();
        };
    }

    private ClientTransport lessLoaded() {
        RandomGenerator random = clock.random();
        int one = random.nextInt(transports.length);
        int other = random.nextInt(transports.length - 1);
        if (other >= one) {
            other++;
        }
        return transports[one].burden() <= transports[other].burden() ? transports[one] : transports[other];
    }

    /** Whether the others that have answered at all do so within this time, and there is one. */
    boolean answerWithin(long nanos, ClientTransport except) {
        boolean isKnown = false;
        for (ClientTransport each : transports) {
            long usualNanos = each == except ? 0 : each.replyNanos();
            if (usualNanos > nanos) {
                return false;
            }
            isKnown |= usualNanos > 0;
        }
        return isKnown;
    }

    /**
     * One of the address to which the key belongs: the one with the highest hash of both, so that the others keep their
     * keys when it goes. The least loaded of its connections. Null if none is usable.
     */
    @Nullable ClientTransport pick(long keyHash) {
        return pick(keyHash, null);
    }

    private @Nullable ClientTransport pick(long keyHash, @Nullable ClientTransport except) {
        ClientTransport best = null;
        long highest = 0;
        for (int i = 0; i < transports.length; i++) {
            ClientTransport each = transports[i];
            if (each == except || !each.isUsable()) {
                continue;
            }
            long rank = mix(hashes[i] ^ mix(keyHash));
            if (best == null || rank > highest || (rank == highest && each.load() < best.load())) {
                best = each;
                highest = rank;
            }
        }
        return best;
    }

    /** As the plan says, without those that are lost or left but still listed; null if there is none. */
    @Nullable ClientTransport pickOpen(CallPlan plan) {
        if (plan.keyed()) {
            return pick(plan.keyHash());
        }
        ClientTransport picked = pick();
        return picked == null || picked.isUsable() ? picked : pickOtherThan(picked, plan);
    }

    /**
     * Another that is usable: of another address if there is one, and, if the plan has a key, the one that would have
     * the key without the first. Null if there is none.
     */
    @Nullable ClientTransport pickOtherThan(ClientTransport first, CallPlan plan) {
        if (plan.keyed()) {
            return pick(plan.keyHash(), first);
        }
        int own = 0;
        while (own < transports.length && transports[own] != first) {
            own++;
        }
        ClientTransport sameAddress = null;
        int from = transports.length < 2 ? 0 : clock.random().nextInt(transports.length);
        for (int i = 0; i < transports.length; i++) {
            int at = (from + i) % transports.length;
            ClientTransport other = transports[at];
            if (other == first || !other.isUsable()) {
                continue;
            }
            if (own == transports.length || hashes[at] != hashes[own]) {
                return other;
            }
            sameAddress = other;
        }
        return sameAddress;
    }
}
