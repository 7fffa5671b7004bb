package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import io.netty.channel.IoEventLoop;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.lang.foreign.Arena;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.LoggerFactory;
import org.verbena.cm.Cm;
import org.verbena.cm.CmEventType;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.EndpointOptions;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.RecordingEndpointHandler;
import org.verbena.transport.spi.RecordingListenerHandler;
import org.verbena.transport.spi.ScatterGatherList;
import org.verbena.transport.spi.WorkRequest;
import org.verbena.verbs.Context;
import org.verbena.verbs.device.AsyncEventType;
import org.verbena.verbs.ffm.Errno;

/** A device that is removed or fails is closed, and comes back in the same process: on devices in memory. */
@Timeout(240)
@Families.Suite
class DeviceRemovalTest {
    @Parameter
    String family;

    @BeforeParameterizedClassInvocation
    static void play(String family) throws Exception {
        Families.play(family);
    }

    /** The device of {@link StubDevice#ROCE}. */
    private static final int ROCE = 0;

    private static final Logger LOGGER = (Logger) LoggerFactory.getLogger("org.verbena.transport.verbs");

    private final VerbsProvider provider = new VerbsProvider();
    private final List<RecordingEndpointHandler> handlers = new ArrayList<>();
    private final ConcurrentLinkedQueue<String> log = new ConcurrentLinkedQueue<>();
    private final AppenderBase<ILoggingEvent> appender = new AppenderBase<>() {
        @Override
        protected void append(ILoggingEvent event) {
            log.add(event.getFormattedMessage());
        }
    };
    private MultiThreadIoEventLoopGroup group;
    private IoEventLoop loop;

    @BeforeEach
    void startLoop() throws Exception {
        StubDevice.install();
        appender.start();
        LOGGER.setLevel(Level.INFO);
        LOGGER.addAppender(appender);
        group = new MultiThreadIoEventLoopGroup(1, provider.newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        loop = group.next();
    }

    @AfterEach
    void endLoop() {
        StubDevice.call("stub_remove", ROCE, 0);
        Patience.await("the loop ended", group.shutdownGracefully(0, 5, TimeUnit.SECONDS));
        LOGGER.detachAppender(appender);
        LOGGER.setLevel(null);
        handlers.forEach(RecordingEndpointHandler::assertNoViolations);
        StubDevice.close(provider);
    }

    private RecordingEndpointHandler connect(InetSocketAddress address, boolean shared) {
        RecordingEndpointHandler handler = new RecordingEndpointHandler("client " + handlers.size(), loop);
        handlers.add(handler);
        if (shared) {
            handler.sharesReceives();
        }
        provider.connect(
                loop,
                address,
                EndpointOptions.DEFAULTS.with(o -> {
                    o.connectTimeoutMillis = 20_000;
                    o.sendDepth = 16;
                    o.receiveDepth = 4;
                    o.maxSges = 2;
                    o.maxInlineBytes = 0;
                    o.sharedReceiveQueue = shared;
                }),
                handler);
        return handler;
    }

    private RecordingEndpointHandler connected(InetSocketAddress address, boolean shared) {
        Families.assumeReceives(shared);
        RecordingEndpointHandler handler = connect(address, shared);
        handler.awaitConnected();
        return handler;
    }

    private RecordingListenerHandler listening() {
        RecordingListenerHandler handler = new RecordingListenerHandler(loop);
        provider.listen(loop, StubDevice.ROCE, ListenOptions.DEFAULTS, handler);
        handler.awaitListening();
        return handler;
    }

    private static RegisteredMemory memory(RecordingEndpointHandler handler) {
        return handler.call(endpoint ->
                endpoint.memoryDomain().register(Arena.global().allocate(4096), Set.of(Access.LOCAL_WRITE)));
    }

    private static void assertSends(RecordingEndpointHandler handler) {
        RegisteredMemory region = memory(handler);
        WorkRequest work = new WorkRequest(1).asSend(7, 0);
        work.buffers().add(region, 0, 64);
        handler.send(work);
        assertThat(handler.awaitSend().status()).isEqualTo(WorkStatus.SUCCESS);
        region.close();
    }

    private void awaitLog(String text) {
        Patience.until("a log line with: " + text, () -> log.stream().anyMatch(line -> line.contains(text)));
    }

    private static void awaitClosed() {
        Patience.until("the device is closed", () -> StubDevice.call("stub_is_open", ROCE) == 0);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatIsOnARemovedDeviceEndsAndTheDeviceComesBack(boolean shared) {
        RecordingEndpointHandler kept = connected(StubDevice.IWARP, false);
        Cm.devices().forEach(provider::connectionLoopOf); // each stays, whatever becomes of its device
        provider.awaitConnectionLoops(); // the event channel of its connect is closed
        String before = StubDevice.leaks();
        RecordingEndpointHandler lost = connected(StubDevice.ROCE, shared);
        RecordingListenerHandler listener = listening();
        RegisteredMemory held = memory(lost);
        if (shared) {
            lost.run(endpoint -> {
                endpoint.sharedReceiveQueue().postReceive(1, new ScatterGatherList(1).add(held, 0, 64));
                endpoint.sharedReceiveQueue().flush();
            });
        }
        MemoryDomain domain = lost.call(endpoint -> endpoint.memoryDomain());
        AtomicInteger told = new AtomicInteger();
        domain.whenLost(told::incrementAndGet);

        StubDevice.call("stub_remove", ROCE, 1);
        StubDevice.call("stub_cm_device", ROCE, CmEventType.DEVICE_REMOVAL.value());
        assertThat(lost.awaitDisconnected())
                .isInstanceOf(ConnectionException.Lost.class)
                .hasMessageContaining("its device stub0 was removed");
        awaitLog("stub0 was removed, but this process still has it open: ");
        awaitLog("MemoryRegion");
        Patience.until("the loss is reported", () -> told.get() > 0);
        assertThat(told).hasValue(1);
        domain.whenLost(told::incrementAndGet);
        assertThat(told).as("who asks later is told at once").hasValue(2);
        assertThat(StubDevice.call("stub_is_open", ROCE)).isOne();
        held.close();
        awaitClosed();
        Patience.until(
                "there is what there was: " + before, () -> StubDevice.leaks().equals(before));
        assertThat(connect(StubDevice.ROCE, false).awaitDisconnected()).hasMessageContaining("ENODEV");
        assertSends(kept);

        StubDevice.call("stub_remove", ROCE, 0);
        RecordingEndpointHandler back = connected(StubDevice.ROCE, shared);
        assertListensAgain(listener);
        assertSends(back);
        MemoryDomain another = back.call(endpoint -> endpoint.memoryDomain());
        assertThat(another).isNotSameAs(domain);
        assertSends(kept);
    }

    @Test
    void aRemovedDeviceIsLetGoOfThoughNothingIsOnIt() {
        RecordingEndpointHandler client = connected(StubDevice.ROCE, false);
        client.awaitPrepared().disconnect();
        assertThat(client.awaitDisconnected()).isNull();
        StubDevice.call("stub_remove", ROCE, 1);
        // The kernel says that some device was removed.
        provider.devices().findRemoved();
        awaitClosed();
        awaitLog("stub0 was removed, and this process has closed it");
    }

    /** The common loop watches the device then, and what comes later has a loop of its own. */
    @Test
    void aLoopThatCannotBeStartedIsTriedAgain() {
        ConnectionLoop common = provider.connectionLoop();
        Context device = Cm.devices().getFirst();
        StubDevice.fail("rdma_create_event_channel", Errno.EMFILE, 1);
        assertThat(provider.devices().of(device).connectionLoop()).isSameAs(common);
        RecordingEndpointHandler client = connected(StubDevice.ROCE, false);
        assertThat(provider.connectionLoopOf(device)).isNotSameAs(common);
        StubDevice.call("stub_remove", ROCE, 1);
        StubDevice.call("stub_cm_device", ROCE, CmEventType.DEVICE_REMOVAL.value());
        assertThat(client.awaitDisconnected()).isInstanceOf(ConnectionException.Lost.class);
        awaitClosed();
    }

    @Test
    void aDeviceThatWasListedAloneIsLetGoOf() {
        assertThat(provider.description()).contains("stub0");
        StubDevice.call("stub_remove", ROCE, 1);
        assertThat(provider.description()).doesNotContain("stub0");
        assertThat(StubDevice.call("stub_is_open", ROCE)).isZero();
    }

    @Test
    void whatIsOnADeviceThatFailsEndsAndOthersBeginAnew() {
        RecordingEndpointHandler kept = connected(StubDevice.IWARP, false);
        RecordingEndpointHandler lost = connected(StubDevice.ROCE, false);
        RecordingListenerHandler listener = listening();
        StubDevice.call("stub_async_device", ROCE, AsyncEventType.DEVICE_FATAL.value());
        assertThat(lost.awaitDisconnected())
                .isInstanceOf(ConnectionException.Lost.class)
                .hasMessageContaining("the device reported a fatal error (DEVICE_FATAL)");
        awaitLog("stub0 reported a fatal error (DEVICE_FATAL), and this process has closed it");
        assertSends(connected(StubDevice.ROCE, false));
        assertListensAgain(listener);
        assertSends(kept);
    }

    private static int listens() {
        String[] calls = StubDevice.allCalls().split(" ");
        int at = Arrays.asList(calls).indexOf("rdma_listen");
        return at < 0 ? 0 : Integer.parseInt(calls[at + 1]);
    }

    private static void assertListensAgain(RecordingListenerHandler listener) {
        Patience.until("it listens again", () -> listens() == 2);
        StubDevice.call("stub_request", StubDevice.ROCE.getPort());
        listener.awaitRequest().reject(new byte[0]);
    }

    /** A bond has failed over to another device, whose driver is not ready yet. */
    @Test
    void aListenerWhoseAddressHasMovedListensAgain() {
        RecordingListenerHandler listener = listening();
        StubDevice.fail("rdma_bind_addr", Errno.ENODEV, 3);
        StubDevice.call("stub_cm_listener", StubDevice.ROCE.getPort(), CmEventType.ADDR_CHANGE.value(), 0);
        assertListensAgain(listener);
        listener.awaitListening().close();
        assertThat(listener.awaitClosed()).isNull();
        listener.assertNoViolations();
    }

    @Test
    void aListenerWithoutItsDeviceCanBeClosed() {
        RecordingListenerHandler listener = listening();
        StubDevice.fail("rdma_bind_addr", Errno.ENODEV, Integer.MAX_VALUE);
        StubDevice.call("stub_cm_listener", StubDevice.ROCE.getPort(), CmEventType.ADDR_CHANGE.value(), 0);
        awaitLog("binds its address again");
        listener.awaitListening().close();
        assertThat(listener.awaitClosed()).isNull();
        assertThat(listens()).isOne();
    }
}
