package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetSocketAddress;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.cm.AddressInfo;
import org.verbena.cm.Cm;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmException;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.EventChannel;
import org.verbena.cm.InfinibandAddress;
import org.verbena.cm.PortSpace;
import org.verbena.cm.sync.CmEndpoint;
import org.verbena.cm.sync.SynchronousId;
import org.verbena.tools.Main;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.SharedReceiveQueue;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.address.Gid;
import org.verbena.verbs.work.SendFlags;

/** Calls that wait, and one-line operations, with C's rdma_server and rdma_client and with themselves. */
@Tag("lab")
@Timeout(350)
class SynchronousEndpointTest {
    private static final int PORT = 7850;

    private static final int WAIT_MILLIS = 15_000;
    private static final int EINVAL = 22;
    private static final int ENOTCONN = 107;

    private static AddressInfo active(LabDevice device, int port) {
        return Cm.addressInfo(device.address(), "" + port, AddressInfo.Hints.active(PortSpace.TCP))
                .getFirst();
    }

    private static AddressInfo passive(LabDevice device, int port) {
        return Cm.addressInfo(device.address(), "" + port, AddressInfo.Hints.passive(PortSpace.TCP))
                .getFirst();
    }

    private static void requireSuccess(WorkCompletions completion) {
        assertThat(completion).as("a completion in time").isNotNull();
        assertThat(completion.isSuccess(0)).as(completion.describe(0)).isTrue();
    }

    private static FutureTask<Void> serve(Runnable server) {
        FutureTask<Void> serving = new FutureTask<>(server, null);
        Thread.ofPlatform().daemon().name("server").start(serving);
        return serving;
    }

    /** Ends a connection that the other side ends as well, perhaps first. */
    private static void disconnect(SynchronousId id) {
        try {
            id.disconnect();
        } catch (CmException alreadyOver) {
            assertThat(alreadyOver.errno()).as(alreadyOver.getMessage()).isIn(EINVAL, ENOTCONN);
        }
    }

    @ParameterizedTest
    @EnumSource
    void visitsRdmaServer(LabDevice device) {
        int port = PORT + device.ordinal();
        try (PeerProgram server = PeerProgram.start("rdma_server", "-s", device.address(), "-p", "" + port)) {
            server.awaitListening(port);
            assertThat(Main.run("rdma-client", "-s", device.address(), "-p", "" + port))
                    .isZero();
            assertThat(server.awaitExit(Patience.LIMIT)).as(server.output()).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource
    void isVisitedByRdmaClient(LabDevice device) throws Exception {
        int port = PORT + 2 + device.ordinal();
        FutureTask<Integer> serving =
                new FutureTask<>(() -> Main.run("rdma-server", "-s", device.address(), "-p", "" + port));
        Thread.ofPlatform().daemon().name("rdma-server").start(serving);
        Patience.until(
                "rdma-server listens",
                () -> PeerProgram.capture("rdma", "resource", "show", "cm_id").contains(":" + port));
        PeerProgram.run(Patience.LIMIT, "rdma_client", "-s", device.address(), "-p", "" + port);
        assertThat(serving.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS)).isZero();
    }

    @ParameterizedTest
    @EnumSource
    void readsAndWrites(LabDevice device) throws Exception {
        int port = PORT + 4 + device.ordinal();
        try (SynchronousId listener = SynchronousId.of(passive(device, port));
                Arena arena = Arena.ofShared()) {
            listener.id().listen(4);
            MemorySegment theirs = arena.allocate(64);
            theirs.setString(0, "to be read");
            CompletableFuture<String> writtenThere = new CompletableFuture<>();
            // The server gives the region's address and key as private data of its answer.
            FutureTask<Void> serving = serve(() -> {
                try (SynchronousId id = Objects.requireNonNull(listener.request(WAIT_MILLIS));
                        CmEndpoint endpoint = CmEndpoint.create(id.id(), 2, 2);
                        MemoryRegion readable = endpoint.registerForRead(theirs.asSlice(0, 32));
                        MemoryRegion writable = endpoint.registerForWrite(theirs.asSlice(32, 32));
                        MemoryRegion messages = endpoint.registerMessages(arena.allocate(8))) {
                    endpoint.postReceive(1, messages, 0, 8);
                    byte[] keys = new byte[24];
                    java.nio.ByteBuffer.wrap(keys)
                            .putLong(readable.address())
                            .putInt(readable.remoteKey())
                            .putLong(writable.address())
                            .putInt(writable.remoteKey());
                    id.accept(ConnectionParameters.DEFAULT.withPrivateData(keys));
                    requireSuccess(endpoint.awaitReceive(WAIT_MILLIS));
                    writtenThere.complete(theirs.getString(32));
                    disconnect(id);
                }
            });
            try (SynchronousId id = SynchronousId.of(active(device, port));
                    CmEndpoint endpoint = CmEndpoint.create(id.id(), 4, 2);
                    MemoryRegion region = endpoint.registerMessages(arena.allocate(64))) {
                id.connect(ConnectionParameters.DEFAULT);
                java.nio.ByteBuffer keys = java.nio.ByteBuffer.wrap(
                        Objects.requireNonNull(id.lastEvent()).privateData());
                endpoint.postRead(1, region, 0, 32, SendFlags.SIGNALED, keys.getLong(), keys.getInt());
                requireSuccess(endpoint.awaitSend(WAIT_MILLIS));
                assertThat(region.segment().getString(0)).isEqualTo("to be read");
                region.segment().setString(0, "written");
                endpoint.postWrite(2, region, 0, 32, SendFlags.SIGNALED, keys.getLong(), keys.getInt());
                endpoint.postSend(3, region, 32, 8, SendFlags.SIGNALED);
                requireSuccess(endpoint.awaitSend(WAIT_MILLIS));
                requireSuccess(endpoint.awaitSend(WAIT_MILLIS));
                assertThat(endpoint.awaitReceive(50)).isNull();
                assertThat(writtenThere.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                        .isEqualTo("written");
                // The server's own disconnect waits for this one.
                disconnect(id);
            }
            serving.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
    }

    @Test
    void receivesFromASharedQueue() throws Exception {
        LabDevice device = LabDevice.RXE;
        int port = PORT + 6;
        try (SynchronousId listener = SynchronousId.of(passive(device, port));
                Arena arena = Arena.ofShared()) {
            listener.id().listen(4);
            CompletableFuture<Integer> receivedBytes = new CompletableFuture<>();
            FutureTask<Void> serving = serve(() -> {
                try (SynchronousId id = Objects.requireNonNull(listener.request(WAIT_MILLIS));
                        var domain = Objects.requireNonNull(id.id().device()).allocateProtectionDomain();
                        SharedReceiveQueue shared = domain.createSharedReceiveQueue(4, 1);
                        CmEndpoint endpoint = CmEndpoint.create(id.id(), 2, 4, shared);
                        MemoryRegion region = endpoint.registerMessages(arena.allocate(64))) {
                    endpoint.postReceive(1, region, 0, 64);
                    id.accept(ConnectionParameters.DEFAULT);
                    WorkCompletions completion = endpoint.awaitReceive(WAIT_MILLIS);
                    requireSuccess(completion);
                    receivedBytes.complete(completion.lengthBytes(0));
                    disconnect(id);
                }
            });
            try (SynchronousId id = SynchronousId.of(active(device, port));
                    CmEndpoint endpoint = CmEndpoint.create(id.id(), 1, 1);
                    MemoryRegion region = endpoint.registerMessages(arena.allocate(48))) {
                id.connect(ConnectionParameters.DEFAULT);
                endpoint.postSend(1, region, 0, 48, SendFlags.SIGNALED);
                requireSuccess(endpoint.awaitSend(WAIT_MILLIS));
                assertThat(receivedBytes.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                        .isEqualTo(48);
                disconnect(id);
            }
            serving.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
    }

    @ParameterizedTest
    @EnumSource
    void throwsWhatAnEventTells(LabDevice device) {
        try (SynchronousId id = SynchronousId.of(active(device, 7699));
                CmEndpoint endpoint = CmEndpoint.create(id.id(), 1, 1, 16)) {
            assertThat(endpoint.id()).isSameAs(id.id());
            assertThat(id.id().portSpace()).isEqualTo(PortSpace.TCP);
            assertThat(id.id().queuePair()).isSameAs(endpoint.queuePair());
            assertThat(endpoint.queuePair().sendQueue().maxInlineBytes()).isGreaterThanOrEqualTo(16);
            // siw asks the peer within the call, so there is no event.
            assertThatExceptionOfType(CmException.class)
                    .isThrownBy(() -> id.connect(ConnectionParameters.DEFAULT))
                    .withMessageContaining(device == LabDevice.SIW ? "ECONNREFUSED" : "REJECTED")
                    .withMessageContaining("nobody listens")
                    .satisfies(refused -> {
                        boolean event = device != LabDevice.SIW;
                        assertThat(refused.eventType()).isEqualTo(event ? CmEventType.REJECTED : null);
                        assertThat(refused.status() != 0).isEqualTo(event);
                        assertThat(refused.call()).contains("connect");
                    });
        }
        assertThatExceptionOfType(CmException.class)
                .isThrownBy(() -> {
                    try (SynchronousId id = SynchronousId.create(PortSpace.TCP)) {
                        id.resolveAddress(null, new InetSocketAddress(device.silentAddress(), 1), 500);
                    }
                })
                .withMessageContaining("ETIMEDOUT");
    }

    /** Addresses of InfiniBand's own: Linux has them on RoCE as well. */
    @Test
    void bindsToInfinibandAddressesAndResolvesThem() {
        InfinibandAddress any = InfinibandAddress.ofPort(Gid.ZERO, PortSpace.TCP, PORT + 9);
        try (EventChannel events = EventChannel.open();
                CmId listener = CmId.create(events, PortSpace.TCP);
                CmId client = CmId.create(events, PortSpace.TCP)) {
            assertThat(listener.localInfinibandAddress()).isNull();
            listener.bind(any);
            assertThat(Objects.requireNonNull(listener.localInfinibandAddress()).serviceId())
                    .isEqualTo(any.serviceId());
            Gid gid;
            try (Context context = Verbs.device(LabDevice.RXE.deviceName()).open()) {
                gid = context.queryGid(1, 0).gid();
            }
            client.resolveAddress(null, InfinibandAddress.ofPort(gid, PortSpace.TCP, PORT + 9), 2000);
            ConnectedPair.expect(events, CmEventType.ADDR_RESOLVED);
            assertThat(Objects.requireNonNull(client.device()).device().name()).isEqualTo(LabDevice.RXE.deviceName());
            assertThat(Objects.requireNonNull(client.localInfinibandAddress()).gid())
                    .isEqualTo(gid);
        }
    }
}
