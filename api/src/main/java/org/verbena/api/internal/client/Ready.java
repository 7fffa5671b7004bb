package org.verbena.api.internal.client;

import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;
import org.verbena.api.internal.request.Messenger;

/** The connections of a client that are up, and how one is chosen among them. Does not change. Any thread. */
final class Ready {
    static final Ready NONE = new Ready(List.of(), List.of());

    private final Messenger[] messengers;

    /** Of their addresses, which are the same in all clients. */
    private final long[] hashes;

    Ready(List<Messenger> messengers, List<SocketAddress> addresses) {
        this.messengers = messengers.toArray(Messenger[]::new);
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
        return messengers.length == 0;
    }

    boolean isWritable() {
        for (Messenger messenger : messengers) {
            if (messenger.channel().isWritable()) {
                return true;
            }
        }
        return false;
    }

    /** The less loaded of two; null if there is none. */
    @Nullable Messenger pick() {
        return switch (messengers.length) {
            case 0 -> null;
            case 1 -> messengers[0];
            default -> lessLoaded();
        };
    }

    private Messenger lessLoaded() {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        int one = random.nextInt(messengers.length);
        int other = random.nextInt(messengers.length - 1);
        if (other >= one) {
            other++;
        }
        return messengers[one].load() <= messengers[other].load() ? messengers[one] : messengers[other];
    }

    /**
     * One of the address to which the key belongs: the one with the highest hash of both, so that the others keep their
     * keys when it goes. The least loaded of its connections.
     */
    @Nullable Messenger pick(long keyHash) {
        Messenger best = null;
        long highest = 0;
        for (int i = 0; i < messengers.length; i++) {
            long rank = mix(hashes[i] ^ mix(keyHash));
            if (best == null || rank > highest || (rank == highest && messengers[i].load() < best.load())) {
                best = messengers[i];
                highest = rank;
            }
        }
        return best;
    }

    /** As the plan says, without those that have been lost but are still listed; null if there is none. */
    @Nullable Messenger pickOpen(CallPlan plan) {
        Messenger picked = plan.keyed() ? pick(plan.keyHash()) : pick();
        return picked == null || !picked.isGone() ? picked : pickOtherThan(picked);
    }

    /** Another that is open; null if there is none. */
    @Nullable Messenger pickOtherThan(Messenger first) {
        int from = messengers.length < 2 ? 0 : ThreadLocalRandom.current().nextInt(messengers.length);
        for (int i = 0; i < messengers.length; i++) {
            Messenger other = messengers[(from + i) % messengers.length];
            if (other != first && !other.isGone()) {
                return other;
            }
        }
        return null;
    }
}
