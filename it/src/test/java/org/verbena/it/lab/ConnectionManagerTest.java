package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import java.io.PrintWriter;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.verbena.cm.AddressInfo;
import org.verbena.cm.Cm;
import org.verbena.cm.CmEvent;
import org.verbena.cm.CmEventType;
import org.verbena.cm.CmException;
import org.verbena.cm.CmId;
import org.verbena.cm.ConnectionParameters;
import org.verbena.cm.EventChannel;
import org.verbena.cm.PortSpace;
import org.verbena.cm.RejectReason;
import org.verbena.tools.interop.rping.RpingClient;
import org.verbena.tools.interop.rping.RpingServer;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairExtension;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.WorkRequestBuilder;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.SendFlags;
import org.verbena.verbs.work.SendOperation;

/** What the kernel's connection manager says when something is wrong, and that it gives everything back. */
@Tag("lab")
@Tag("lab-long")
@Timeout(350)
class ConnectionManagerTest {
    private static final int PORT = 7700;
    private static final int NOBODYS_PORT = 7699;
    private static final PrintWriter NOWHERE = new PrintWriter(PrintWriter.nullWriter());

    private static void expectRejected(LabDevice device, CmEvent event) {
        if (device == LabDevice.RXE) {
            assertThat(event.status()).isEqualTo(RejectReason.INVALID_SERVICE_ID.value());
        } else {
            assertThat(event.status()).isEqualTo(-111);
        }
    }

    @Test
    void findsTheLabsDevices() {
        assertThat(Cm.unavailabilityCause()).isNull();
        assertThat(Cm.devices().stream().map(context -> context.device().name()))
                .contains(LabDevice.RXE.deviceName(), LabDevice.SIW.deviceName());
        List<Context> again = Cm.devices();
        assertThat(again).isEqualTo(Cm.devices());
    }

    @ParameterizedTest
    @EnumSource
    void isRejectedAtOnceWhereNobodyListens(LabDevice device) {
        try (EventChannel events = EventChannel.open();
                CmId id = CmId.create(events, PortSpace.TCP)) {
            ConnectedPair.resolve(events, id, new InetSocketAddress(device.address(), NOBODYS_PORT));
            // Before connecting, as everybody does: iWARP wants the queue pair then.
            try (ConnectedPair.End end = new ConnectedPair.End(id)) {
                String told;
                try {
                    end.id.connect(ConnectionParameters.DEFAULT);
                    CmEvent event = ConnectedPair.expect(events, CmEventType.REJECTED);
                    expectRejected(device, event);
                    told = event.describe();
                } catch (CmException atOnce) {
                    // siw's TCP connection is refused while rdma_connect runs, sometimes.
                    assertThat(device).isEqualTo(LabDevice.SIW);
                    assertThat(atOnce.errno()).isEqualTo(111);
                    told = atOnce.getMessage();
                }
                System.out.println(told);
                assertThat(told).contains("nobody listens");
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void givesUpOnASilentAddressInTheTimeGiven(LabDevice device) {
        try (EventChannel events = EventChannel.open();
                CmId id = CmId.create(events, PortSpace.TCP)) {
            long begin = System.nanoTime();
            id.resolveAddress(null, new InetSocketAddress(device.silentAddress(), PORT), 1000);
            CmEvent event = ConnectedPair.expect(events, CmEventType.ADDR_ERROR);
            Duration took = Duration.ofNanos(System.nanoTime() - begin);
            System.out.println(event.describe() + " after " + took);
            assertThat(took).isBetween(Duration.ofMillis(900), Patience.LIMIT);
            assertThat(event.describe()).contains("ETIMEDOUT").contains("status -110");
        }
    }

    @Test
    void saysThatNoDeviceLeadsThere() {
        try (EventChannel events = EventChannel.open();
                CmId id = CmId.create(events, PortSpace.TCP)) {
            assertThatExceptionOfType(CmException.class)
                    .isThrownBy(() -> {
                        id.resolveAddress(null, new InetSocketAddress("203.0.113.1", PORT), 1000);
                        throw ConnectedPair.expect(events, CmEventType.ADDR_ERROR)
                                .toException("rdma_resolve_addr");
                    })
                    .withMessageContaining("rdma_resolve_addr")
                    .withMessageMatching("(?s).*(ENETUNREACH|ENODEV|EHOSTUNREACH).*");
        }
        try (EventChannel events = EventChannel.open();
                CmId id = CmId.create(events, PortSpace.TCP)) {
            assertThatExceptionOfType(CmException.class)
                    .isThrownBy(() -> id.bind(new InetSocketAddress("203.0.113.1", PORT)))
                    .withMessageMatching("(?s).*(EADDRNOTAVAIL|ENODEV).*");
        }
    }

    @Test
    void connectsAQueuePairWithABuilder() {
        QueuePairExtension extension =
                QueuePairExtension.building(EnumSet.of(SendOperation.SEND, SendOperation.RDMA_WRITE));
        try (ConnectedPair pair = new ConnectedPair(
                        LabDevice.RXE.address(),
                        ConnectionParameters.DEFAULT,
                        ConnectionParameters.DEFAULT,
                        extension);
                WorkCompletions polled = new WorkCompletions(1)) {
            pair.client.region.segment().setString(0, "built");
            pair.server.queuePair.receiveQueue().receive(7).sge(pair.server.region, 1024, 64);
            pair.server.queuePair.receiveQueue().flush();
            WorkRequestBuilder builder = pair.client.queuePair.builder();
            builder.start();
            builder.write(1, SendFlags.SIGNALED, pair.server.region.address(), pair.server.region.remoteKey())
                    .sge(pair.client.region, 0, 6);
            builder.send(2, SendFlags.SIGNALED).sge(pair.client.region, 0, 6);
            builder.complete();
            assertThat(pair.client.awaitCompletion(polled).workRequestId(0)).isEqualTo(1);
            assertThat(polled.isSuccess(0)).isTrue();
            assertThat(pair.client.awaitCompletion(polled).workRequestId(0)).isEqualTo(2);
            assertThat(polled.isSuccess(0)).isTrue();
            assertThat(pair.server.awaitCompletion(polled).workRequestId(0)).isEqualTo(7);
            assertThat(polled.lengthBytes(0)).isEqualTo(6);
            assertThat(pair.server.region.segment().getString(0)).isEqualTo("built");
            assertThat(pair.server.region.segment().getString(1024)).isEqualTo("built");
            assertThatIllegalStateException().isThrownBy(pair.server.queuePair::builder);
        }
    }

    @Test
    void saysThatSiwHasNoBuilders() {
        InetSocketAddress silent = new InetSocketAddress(LabDevice.SIW.address(), PORT);
        try (EventChannel events = EventChannel.open();
                CmId id = CmId.create(events, PortSpace.TCP)) {
            ConnectedPair.resolve(events, id, silent);
            Context device = Objects.requireNonNull(id.device());
            try (ProtectionDomain domain = device.allocateProtectionDomain();
                    CompletionQueue completions = device.createCompletionQueue(16)) {
                QueuePairOptions options =
                        QueuePairOptions.reliable(completions, new QueuePairCapabilities(4, 4, 1, 1, 0));
                assertThatExceptionOfType(CmException.class)
                        .isThrownBy(() -> id.createQueuePair(
                                domain, options, QueuePairExtension.building(EnumSet.of(SendOperation.SEND))))
                        .withMessageContaining("rdma_create_qp_ex")
                        .withMessageContaining("EOPNOTSUPP");
                // Nothing was left behind: a plain one can be made.
                id.createQueuePair(domain, options).close();
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void refusesToReadWithAWrongKey(LabDevice device) {
        try (ConnectedPair pair = new ConnectedPair(device);
                WorkCompletions polled = new WorkCompletions(4)) {
            pair.client
                    .queuePair
                    .sendQueue()
                    .read(1, SendFlags.SIGNALED, pair.server.region.address(), pair.server.region.remoteKey() ^ 0x5a)
                    .sge(pair.client.region, 0, 64)
                    .flush();
            requireRefused(device, pair, polled);
        }
    }

    @ParameterizedTest
    @EnumSource
    void refusesToReadBeyondTheRegion(LabDevice device) {
        try (ConnectedPair pair = new ConnectedPair(device);
                WorkCompletions polled = new WorkCompletions(4)) {
            pair.client
                    .queuePair
                    .sendQueue()
                    .read(
                            1,
                            SendFlags.SIGNALED,
                            pair.server.region.address() + ConnectedPair.REGION_BYTES - 63,
                            pair.server.region.remoteKey())
                    .sge(pair.client.region, 0, 64)
                    .flush();
            requireRefused(device, pair, polled);
        }
    }

    private static void requireRefused(LabDevice device, ConnectedPair pair, WorkCompletions polled) {
        pair.client.awaitCompletion(polled);
        System.out.println(polled.describe(0));
        assertThat(polled.workRequestId(0)).isEqualTo(1);
        if (device == LabDevice.RXE) {
            assertThat(polled.status(0)).isEqualTo(CompletionStatus.REM_ACCESS_ERR);
        } else {
            // siw ends the connection with a TERMINATE message and flushes.
            assertThat(polled.status(0)).isNotEqualTo(CompletionStatus.SUCCESS);
        }
    }

    @ParameterizedTest
    @EnumSource
    void failsSendsThatFindNoReceive(LabDevice device) {
        try (ConnectedPair pair = new ConnectedPair(
                        device.address(),
                        ConnectionParameters.DEFAULT.withRetries(7, 1),
                        ConnectionParameters.DEFAULT.withRetries(7, 1));
                WorkCompletions polled = new WorkCompletions(4)) {
            pair.client
                    .queuePair
                    .sendQueue()
                    .send(7, SendFlags.SIGNALED)
                    .sge(pair.client.region, 0, 64)
                    .flush();
            pair.client.awaitCompletion(polled);
            System.out.println(polled.describe(0));
            if (device == LabDevice.RXE) {
                assertThat(polled.status(0)).isEqualTo(CompletionStatus.RNR_RETRY_EXC_ERR);
            } else {
                // iWARP completes a send when TCP has it, and then the peer ends the connection.
                pair.awaitDisconnected();
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void failsPendingWorkWhenThePeerIsKilled(LabDevice device) {
        try (PeerProgram server =
                PeerProgram.start("rping", "-s", "-a", device.address(), "-p", "" + PORT, "-S", "65535")) {
            server.awaitListening(PORT);
            AtomicInteger pings = new AtomicInteger();
            PrintWriter counts = new PrintWriter(PrintWriter.nullWriter()) {
                @Override
                public void println(String ping) {
                    pings.incrementAndGet();
                }
            };
            RpingClient client = new RpingClient(
                    null, new InetSocketAddress(device.address(), PORT), 65535, 0, true, false, counts, true);
            FutureTask<Void> pinging = new FutureTask<>(() -> {
                client.run();
                return null;
            });
            Thread.ofPlatform().daemon().name("rping client").start(pinging);
            // Far enough into it: the server has registered memory and is reading and writing.
            Patience.until("it pings", () -> pings.get() >= 5 || pinging.isDone());
            assertThat(pinging.isDone()).as("it goes on for ever").isFalse();
            server.kill();
            assertThatExceptionOfType(java.util.concurrent.ExecutionException.class)
                    .isThrownBy(() -> pinging.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                    .satisfies(e -> System.out.println(e.getCause().getMessage()))
                    .withMessageMatching("(?s).*client: .*(disconnected|RETRY_EXC_ERR|error state).*");
        }
    }

    @ParameterizedTest
    @EnumSource
    void aServerOutlivesAKilledClient(LabDevice device) throws Exception {
        try (RpingServer server =
                new RpingServer(new InetSocketAddress(device.address(), PORT + 1), 65535, false, NOWHERE, false)) {
            server.listen();
            FutureTask<Void> serving = new FutureTask<>(() -> {
                server.serveOne();
                return null;
            });
            Thread.ofPlatform().daemon().name("rping server").start(serving);
            try (PeerProgram client = PeerProgram.start(
                    "rping", "-c", "-a", device.address(), "-p", "" + (PORT + 1), "-S", "65535", "-v")) {
                client.awaitLine("ping data: rdma-ping-20:", Patience.LIMIT);
                client.kill();
            }
            try {
                serving.get(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
            } catch (java.util.concurrent.ExecutionException told) {
                System.out.println(told.getCause().getMessage());
                assertThat(told.getCause().getMessage()).contains("server: ");
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void tellsWhyARequestIsRejected(LabDevice device) {
        int limit = device == LabDevice.RXE ? 148 : 251;
        byte[] reason = new byte[limit];
        Arrays.fill(reason, (byte) 'x');
        InetSocketAddress at = new InetSocketAddress(device.address(), PORT + 2);
        try (EventChannel events = EventChannel.open();
                CmId listener = CmId.create(events, PortSpace.TCP);
                CmId id = CmId.create(events, PortSpace.TCP)) {
            listener.bind(at);
            listener.listen(4);
            ConnectedPair.resolve(events, id, at);
            CmEvent event;
            try (ConnectedPair.End end = new ConnectedPair.End(id)) {
                end.id.connect(ConnectionParameters.DEFAULT);
                CmEvent request = ConnectedPair.expect(events, CmEventType.CONNECT_REQUEST);
                assertThat(request.listener()).isSameAs(listener);
                try (CmId asking = request.id()) {
                    assertThatIllegalArgumentException()
                            .isThrownBy(() -> asking.reject(new byte[limit + 1]))
                            .withMessageContaining("at most " + limit);
                    asking.reject(reason);
                }
                event = ConnectedPair.expect(events, CmEventType.REJECTED);
            }
            assertThat(event.id()).isSameAs(id);
            assertThat(event.privateData()).isEqualTo(reason);
            System.out.println(event.describe());
            if (device == LabDevice.RXE) {
                assertThat(event.status()).isEqualTo(RejectReason.CONSUMER_DEFINED.value());
            }
        }
    }

    @ParameterizedTest
    @EnumSource
    void carriesPrivateDataUpToTheLimitAndRefusesMore(LabDevice device) {
        int askLimit = device == LabDevice.RXE ? 56 : 251;
        int answerLimit = device == LabDevice.RXE ? 196 : 251;
        byte[] asked = new byte[askLimit];
        byte[] answered = new byte[answerLimit];
        Arrays.fill(asked, (byte) 1);
        Arrays.fill(answered, (byte) 2);
        try (ConnectedPair pair = new ConnectedPair(
                device.address(),
                ConnectionParameters.DEFAULT.withPrivateData(asked),
                ConnectionParameters.DEFAULT.withPrivateData(answered))) {
            assertThat(pair.request.privateData()).isEqualTo(asked);
            assertThat(pair.answer.privateData()).isEqualTo(answered);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> pair.client.id.connect(
                            ConnectionParameters.DEFAULT.withPrivateData(new byte[askLimit + 1])))
                    .withMessageContaining("at most " + askLimit);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> pair.server.id.accept(
                            ConnectionParameters.DEFAULT.withPrivateData(new byte[answerLimit + 1])))
                    .withMessageContaining("at most " + answerLimit);
        }
    }

    @ParameterizedTest
    @EnumSource
    void knowsAddressesPortsAndDevices(LabDevice device) {
        try (ConnectedPair pair = new ConnectedPair(device)) {
            InetSocketAddress server = Objects.requireNonNull(pair.server.id.localAddress());
            InetSocketAddress client = Objects.requireNonNull(pair.client.id.localAddress());
            assertThat(server.getAddress().getHostAddress()).isEqualTo(device.address());
            assertThat(client.getPort()).isPositive();
            assertThat(pair.client.id.remoteAddress()).isEqualTo(server);
            assertThat(pair.server.id.remoteAddress()).isEqualTo(client);
            assertThat(pair.client.id.device()).isSameAs(pair.server.id.device());
            assertThat(Objects.requireNonNull(pair.client.id.device()).device().name())
                    .isEqualTo(device.deviceName());
            assertThat(pair.client.id.portNumber()).isEqualTo(1);
        }
    }

    @Test
    void connectsOverIpv6() {
        try (ConnectedPair pair = new ConnectedPair(
                LabDevice.RXE.ipv6Address(), ConnectionParameters.DEFAULT, ConnectionParameters.DEFAULT)) {
            assertThat(Objects.requireNonNull(pair.client.id.remoteAddress())
                            .getAddress()
                            .getHostAddress())
                    .isEqualTo("fd77:0:0:0:0:0:0:1");
        }
    }

    @ParameterizedTest
    @EnumSource
    void parentsRefuseToCloseOverChildrenAndNameThem(LabDevice device) {
        try (ConnectedPair pair = new ConnectedPair(device)) {
            assertThatIllegalStateException()
                    .isThrownBy(() -> pair.client.id.close())
                    .withMessageContaining(pair.client.queuePair.toString());
            assertThatIllegalStateException()
                    .isThrownBy(() -> pair.events.close())
                    .withMessageContaining("3 open ids")
                    .withMessageContaining(pair.client.id.toString());
        }
    }

    @Test
    @SuppressWarnings("try") // closes twice
    void stepsOutOfOrderAreRefusedAndNeverCrash() {
        try (EventChannel events = EventChannel.open()) {
            CmId id = CmId.create(events, PortSpace.TCP);
            // librdmacm would follow a null pointer in each of these.
            assertThatIllegalStateException().isThrownBy(() -> id.resolveRoute(1000));
            assertThatIllegalStateException().isThrownBy(() -> id.connect(ConnectionParameters.DEFAULT));
            assertThatIllegalStateException().isThrownBy(() -> id.accept(ConnectionParameters.DEFAULT));
            assertThatIllegalStateException().isThrownBy(() -> id.reject(new byte[0]));
            assertThatIllegalStateException().isThrownBy(id::disconnect);
            assertThatIllegalStateException().isThrownBy(id::establish);
            assertThat(id.device()).isNull();
            assertThat(id.localAddress()).isNull();
            id.close();
            id.close();
            assertThatIllegalStateException()
                    .isThrownBy(() -> id.bind(new InetSocketAddress(PORT)))
                    .withMessageContaining("closed");
            assertThatIllegalStateException().isThrownBy(id::remoteAddress);
            events.close();
            assertThatIllegalStateException().isThrownBy(events::tryGet);
            assertThatIllegalStateException().isThrownBy(() -> CmId.create(events, PortSpace.TCP));
        }
    }

    @Test
    void eventsOfClosedIdsNeverArrive() {
        try (EventChannel events = EventChannel.open()) {
            for (int i = 0; i < 50; i++) {
                CmId id = CmId.create(events, PortSpace.TCP);
                id.resolveAddress(null, new InetSocketAddress(LabDevice.RXE.address(), PORT), 1000);
                if (i % 2 == 0) {
                    assertThat(ConnectedPair.expect(events, CmEventType.ADDR_RESOLVED)
                                    .id())
                            .isSameAs(id);
                }
                id.close();
            }
            // The last that was not waited for had its event queued, or under way.
            assertThat(events.get(500)).isNull();
        }
    }

    @Test
    void migratesWithTheEventsThatWait() {
        try (EventChannel here = EventChannel.open();
                EventChannel there = EventChannel.open();
                CmId id = CmId.create(here, PortSpace.TCP)) {
            id.resolveAddress(null, new InetSocketAddress(LabDevice.RXE.address(), PORT), 2000);
            id.migrate(there);
            assertThat(id.channel()).isSameAs(there);
            assertThat(ConnectedPair.expect(there, CmEventType.ADDR_RESOLVED).id())
                    .isSameAs(id);
            assertThat(here.get(100)).isNull();
        }
    }

    @ParameterizedTest
    @EnumSource
    void takesOptions(LabDevice device) {
        InetSocketAddress at = new InetSocketAddress(device.address(), PORT + 3);
        try (EventChannel events = EventChannel.open();
                CmId first = CmId.create(events, PortSpace.TCP);
                CmId second = CmId.create(events, PortSpace.TCP);
                CmId third = CmId.create(events, PortSpace.TCP)) {
            first.setReuseAddress(true);
            first.setTypeOfService(0x20);
            first.bind(at);
            assertThatExceptionOfType(CmException.class)
                    .isThrownBy(() -> second.bind(at))
                    .withMessageContaining("EADDRINUSE");
            third.setReuseAddress(true);
            assertThatCode(() -> third.bind(at)).doesNotThrowAnyException();
            if (device == LabDevice.RXE) {
                second.setAckTimeout(14);
            }
            second.setAddressFamilyOnly(true);
            assertThatIllegalArgumentException().isThrownBy(() -> second.setTypeOfService(256));
            assertThatIllegalArgumentException().isThrownBy(() -> second.setAckTimeout(32));
        }
    }

    @ParameterizedTest
    @EnumSource
    void looksAddressesUp(LabDevice device) {
        List<AddressInfo> found = Cm.addressInfo(device.address(), "7174", AddressInfo.Hints.active(PortSpace.TCP));
        assertThat(found).isNotEmpty();
        assertThat(found.getFirst().destination()).isEqualTo(new InetSocketAddress(device.address(), 7174));
        assertThat(found.getFirst().portSpace()).isEqualTo(PortSpace.TCP);
        List<AddressInfo> passive = Cm.addressInfo(device.address(), "7174", AddressInfo.Hints.passive(PortSpace.TCP));
        assertThat(passive.getFirst().source()).isEqualTo(new InetSocketAddress(device.address(), 7174));
    }

    @Tag("lab-full")
    @Test
    void aThousandConnectionsLeaveNothingBehindOnRxe() throws Exception {
        long grown = grownByConnections(LabDevice.RXE, 1000);
        // A forgotten event, id or queue pair a connection would be some 400,000 bytes at the least.
        assertThat(grown).isLessThan(300_000);
    }

    @Test
    void aHundredConnectionsLeaveNothingBehindOnSiw() throws Exception {
        grownByConnections(LabDevice.SIW, 100);
    }

    @Test
    @Tag("lab-full")
    void aThousandConnectionsLeaveNothingBehindOnSiw() throws Exception {
        assertThat(grownByConnections(LabDevice.SIW, 1000)).isLessThan(300_000);
    }

    /** Returns by how many bytes the native heap grew, when descriptors and the kernel's objects are as they were. */
    private static long grownByConnections(LabDevice device, int count) throws Exception {
        // The first ones load classes, compile and fill caches of the C libraries.
        for (int i = 0; i < count / 5; i++) {
            connectAndDisconnect(device);
        }
        String kernel = kernelResources();
        List<String> descriptors = openDescriptors();
        long mallocBytes = NativeHeap.minInUseBytes();
        for (int i = 0; i < count; i++) {
            connectAndDisconnect(device);
        }
        long grown = NativeHeap.minInUseBytes() - mallocBytes;
        System.out.println(count + " connections; the native heap grew by " + grown + " bytes");
        assertThat(openDescriptors()).isEqualTo(descriptors);
        assertThat(kernelResources()).isEqualTo(kernel);
        return grown;
    }

    private static void connectAndDisconnect(LabDevice device) {
        try (ConnectedPair pair = new ConnectedPair(device)) {
            pair.disconnect();
        }
    }

    /** What this process has open, but for files and jars, which the JVM opens as it likes. */
    private static List<String> openDescriptors() throws java.io.IOException {
        List<String> open = new java.util.ArrayList<>();
        try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
            for (Path descriptor : descriptors.toList()) {
                String target = Files.exists(descriptor, java.nio.file.LinkOption.NOFOLLOW_LINKS)
                        ? Files.readSymbolicLink(descriptor).toString()
                        : "";
                if (target.startsWith("/dev/infiniband") || target.matches("(socket|anon_inode|pipe):.*")) {
                    open.add(target.replaceAll("\\[\\d+]", ""));
                }
            }
        }
        java.util.Collections.sort(open);
        return open;
    }

    /** What the kernel counts for both devices: queue pairs, completion queues, ids ... */
    private static String kernelResources() {
        return PeerProgram.run(Patience.LIMIT, "rdma", "resource", "show");
    }
}
