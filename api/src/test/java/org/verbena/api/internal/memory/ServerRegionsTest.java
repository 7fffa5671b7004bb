package org.verbena.api.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RdmaException;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;

/** Which regions there are, and until when. */
class ServerRegionsTest {
    private final MemorySegment segment = Arena.global().allocate(64);
    private final ServerRegions regions = new ServerRegions(segment, Set.of(Access.REMOTE_READ, Access.REMOTE_ATOMIC));
    private final Device one = new Device();
    private final Device other = new Device();

    /** A device that may be lost, and that counts what is registered. */
    private static final class Device implements MemoryDomain {
        private final List<Runnable> listeners = new ArrayList<>();
        private final List<Region> made = new ArrayList<>();
        private boolean isLost;
        private boolean refuses;

        @Override
        public RegisteredMemory register(MemorySegment segment, Set<Access> access) {
            if (refuses) {
                throw new Refusal();
            }
            Region region = new Region(this, segment, access, 100 + made.size());
            made.add(region);
            return region;
        }

        @Override
        public long registeredBytes() {
            return made.stream().filter(region -> !region.isGone()).count() * 64;
        }

        @Override
        public void whenLost(Runnable listener) {
            if (isLost) {
                listener.run();
            } else {
                listeners.add(listener);
            }
        }

        void lose() {
            isLost = true;
            listeners.forEach(Runnable::run);
        }
    }

    private static final class Refusal extends RdmaException {
        private static final long serialVersionUID = 1L;

        Refusal() {
            super("the device refuses");
        }
    }

    private static final class Region extends RegisteredMemory {
        private final Device device;
        private final int key;

        Region(Device device, MemorySegment segment, Set<Access> access, int key) {
            super(segment, access);
            this.device = device;
            this.key = key;
        }

        @Override
        public int localKey() {
            return key;
        }

        @Override
        public int remoteKey() {
            return key;
        }

        @Override
        protected void deregister() {
            if (device.refuses) {
                throw new Refusal();
            }
        }
    }

    private RemoteMemory token(ServerPeers server, Device device) {
        return regions.token(server, device, device, true);
    }

    @Test
    void hasOneForEachServerAndDevice() {
        ServerPeers server = new ServerPeers();
        RemoteMemory first = token(server, one);
        assertThat(token(server, one)).isEqualTo(first);
        token(server, other);
        token(new ServerPeers(), one);
        assertThat(one.made).hasSize(2);
        assertThat(other.made).hasSize(1);
        regions.close();
        assertThat(one.registeredBytes() + other.registeredBytes()).isZero();
    }

    @Test
    void aConnectionWithoutAtomicsGetsARegionWithout() {
        ServerPeers server = new ServerPeers();
        RemoteMemory without = regions.token(server, one, one, false);
        assertThat(without.access()).containsOnly(Access.REMOTE_READ);
        assertThat(one.made.getFirst().access()).containsOnly(Access.REMOTE_READ);
        assertThat(token(server, one).access()).containsOnly(Access.REMOTE_READ, Access.REMOTE_ATOMIC);
        assertThat(one.made).hasSize(2);
        regions.close();
        ServerRegions counter = new ServerRegions(segment, Set.of(Access.REMOTE_ATOMIC));
        assertThatThrownBy(() -> counter.token(server, one, one, false))
                .isInstanceOf(UnsupportedOperationException.class);
    }

    @Test
    void endsWithTheServerAndTheLastOfItsConnections() {
        ServerPeers server = new ServerPeers();
        ServerPeers another = new ServerPeers();
        assertThat(server.enter()).isTrue();
        token(server, one);
        token(another, one);
        server.leave();
        assertThat(one.made).noneMatch(RegisteredMemory::isClosed);
        server.leave();
        assertThat(one.made).extracting(RegisteredMemory::isGone).containsExactly(true, false);
        assertThat(server.enter()).isFalse();
        assertThatThrownBy(() -> token(server, one)).isInstanceOf(IllegalStateException.class);
        assertThat(one.made).hasSize(2);
        regions.close();
        another.leave();
        assertThat(one.made).allMatch(RegisteredMemory::isGone);
    }

    @Test
    void endsWithTheDevice() {
        ServerPeers server = new ServerPeers();
        token(server, one);
        token(server, other);
        one.lose();
        assertThat(one.registeredBytes()).isZero();
        assertThat(other.registeredBytes()).isPositive();
        // The device is lost while it is asked: nothing stays registered.
        assertThatThrownBy(() -> token(server, one)).isInstanceOf(IllegalStateException.class);
        assertThat(one.registeredBytes()).isZero();
        Device back = new Device();
        token(server, back);
        assertThat(back.registeredBytes()).isPositive();
        regions.close();
        assertThat(other.registeredBytes() + back.registeredBytes()).isZero();
    }

    @Test
    void aDeviceHasOneListenerForAllMemory() {
        ServerPeers server = new ServerPeers();
        for (int i = 0; i < 100; i++) {
            ServerRegions each = new ServerRegions(segment, Set.of(Access.REMOTE_READ));
            each.token(server, one, one, true);
            each.close();
        }
        assertThat(one.listeners).hasSize(1);
        assertThat(one.registeredBytes()).isZero();
    }

    @Test
    void runsWhatWaitsForItsEndInOrder() {
        List<Integer> ran = new ArrayList<>();
        regions.whenGone(() -> ran.add(1));
        regions.whenGone(() -> ran.add(2));
        token(new ServerPeers(), one);
        RegisteredMemory region = one.made.getFirst();
        region.retain();
        regions.close();
        regions.close();
        assertThat(ran).isEmpty();
        region.release();
        assertThat(ran).containsExactly(1, 2);
        regions.whenGone(() -> ran.add(3));
        assertThat(ran).containsExactly(1, 2, 3);
    }

    @Test
    void closesTheOthersIfADeviceRefuses() {
        ServerPeers server = new ServerPeers();
        List<Integer> ran = new ArrayList<>();
        regions.whenGone(() -> ran.add(1));
        token(server, one);
        token(server, other);
        one.refuses = true;
        assertThatThrownBy(regions::close).isInstanceOf(RdmaException.class);
        assertThat(other.registeredBytes()).isZero();
        assertThat(ran).as("what frees memory that a device has still").isEmpty();
    }

    @Test
    void aRefusedRegistrationCanBeTriedAgain() {
        ServerPeers server = new ServerPeers();
        one.refuses = true;
        assertThatThrownBy(() -> token(server, one)).isInstanceOf(RdmaException.class);
        one.refuses = false;
        token(server, one);
        assertThat(one.made).hasSize(1);
        regions.close();
        assertThat(one.registeredBytes()).isZero();
    }
}
