package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.slf4j.LoggerFactory;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;
import org.verbena.transport.RemoteMemory;
import org.verbena.transport.spi.Patience;

/**
 * A program that talks over two devices, one of which it loses. In a process of its own: it may fail to let go of the
 * device, and then the device is gone only when the
 * process has ended.
 */
public final class DeviceLoss {
    /** How long a future may be pending after its device was lost: all of a queue pair's retries, in a slow guest. */
    private static final Duration LIMIT = Patience.LIMIT;

    private static final int PENDING = 8;

    /** Many times what siw takes to disconnect where it does so. */
    private static final int SIW_MILLIS = 20_000;

    /** Both ends of a connection over one device, with an echo. */
    private static final class Pair implements AutoCloseable {
        final String address;
        final RdmaServer server;
        final RdmaClient client;

        /** While set, the server counts what it gets and answers nothing. */
        private volatile CountDownLatch unanswered;

        Pair(String address) {
            this.address = address;
            server = RdmaServer.builder().provider("verbs").bind(address, 0, (exchange, message) -> {
                CountDownLatch counting = unanswered;
                if (counting == null) {
                    exchange.reply(message.retain());
                } else {
                    counting.countDown();
                }
            });
            client = RdmaClient.builder()
                    .provider("verbs")
                    .requestTimeout(LIMIT.multipliedBy(2))
                    .reconnect(false)
                    .connect(address, server.port());
        }

        RdmaChannel serverEnd() {
            return (RdmaChannel) server.connections().iterator().next();
        }

        void exchange() {
            for (int i = 0; i < 20; i++) {
                byte[] message = ("message " + i).getBytes(java.nio.charset.StandardCharsets.UTF_8);
                assertThat(client.request(message))
                        .as("a reply over %s", address)
                        .succeedsWithin(LIMIT)
                        .isEqualTo(message);
            }
        }

        /** Requests that are with the server and will not be answered. */
        Map<String, Future<?>> ask() throws InterruptedException {
            unanswered = new CountDownLatch(PENDING);
            Map<String, Future<?>> pending = new LinkedHashMap<>();
            for (int i = 0; i < PENDING; i++) {
                pending.put("request " + i, client.request(Unpooled.wrappedBuffer(new byte[100])));
            }
            assertThat(unanswered.await(LIMIT.toSeconds(), TimeUnit.SECONDS)).isTrue();
            assertThat(pending.values()).noneMatch(Future::isDone);
            return pending;
        }

        @Override
        public void close() {
            client.close();
            server.close();
        }
    }

    private DeviceLoss() {}

    /**
     * Runs.
     *
     * @param arguments the device that will be lost, its network interface and address
     */
    public static void main(String[] arguments) {
        try {
            lose(arguments);
            System.out.println("done");
            System.exit(0);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }

    private static void lose(String[] arguments) throws Exception {
        String device = arguments[0];
        String netInterface = arguments[1];
        String address = arguments[2];
        try (Pair kept = new Pair(LabDevice.RXE.address())) {
            kept.exchange();
            removal(connect(address), kept, device, netInterface);
            kept.exchange();
            try (PeerProgram theirs = PeerProgram.start("ibv_asyncwatch", "-d", device)) {
                theirs.awaitLine("async event FD", LIMIT);
                Pair lost = connect(address);
                portDown(lost, kept, device, netInterface);
                lost.close();
                theirs.awaitLine("IBV_EVENT_PORT_ERR", LIMIT);
                theirs.awaitLine("IBV_EVENT_PORT_ACTIVE", LIMIT);
            }
            if (device.startsWith("siw")) {
                // Not so on rxe: its queue pair for the connection manager may not have survived.
                DeviceEventsTest.awaitLinks(device + "/1 state ACTIVE", true);
                try (Pair again = connect(address)) {
                    again.exchange();
                }
            }
            kept.exchange();
        }
    }

    private static Pair connect(String address) throws Exception {
        Pair pair = new Pair(address);
        pair.exchange();
        return pair;
    }

    private static void portDown(Pair lost, Pair kept, String device, String netInterface) throws Exception {
        RdmaChannel serverEnd = lost.serverEnd();
        RemoteMemory table = serverEnd
                .memory()
                .register(
                        java.lang.foreign.Arena.global().allocate(4096, 4096),
                        Access.LOCAL_WRITE,
                        Access.REMOTE_READ,
                        Access.REMOTE_WRITE)
                .remote();
        Map<String, Future<?>> pending = lost.ask();
        run("ip", "link", "set", netInterface, "down");
        long begin = System.nanoTime();
        // siw disconnects at once, before it reports its port: the reason is in the log alone, and there is no channel
        // left to post more
        // on. From Linux 6.12 on it leaves its connections alone, as TCP does, and they go on when the interface is
        // back.
        boolean isSiw = device.startsWith("siw");
        if (isSiw && !lost.client.channel().closeFuture().awaitUninterruptibly(SIW_MILLIS)) {
            kept.exchange();
            assertThat(pending.values()).noneMatch(Future::isDone);
            run("ip", "link", "set", netInterface, "up");
            lost.unanswered = null;
            lost.exchange();
            return;
        }
        if (!isSiw) {
            pending.putAll(post(lost, table));
            pending.put("a message of the server", serverEnd.writeAndFlush(message(serverEnd)));
        }
        kept.exchange();
        assertLost(pending, begin, isSiw ? lost.address : "port 1 of " + device + " is down");
        assertLost(Map.of("the client's end", lost.client.channel().closeFuture()), begin, null);
        kept.exchange();
        assertThat(lost.server.channel().isActive())
                .as("listeners go on listening")
                .isTrue();

        run("ip", "link", "set", netInterface, "up");
        kept.exchange();
    }

    private static void removal(Pair lost, Pair kept, String device, String netInterface) throws Exception {
        BlockingQueue<String> log = warnings();
        RdmaChannel serverEnd = lost.serverEnd();
        ByteBuf keptBuffer = message(lost.client.channel());
        RegisteredMemory keptMemory = serverEnd
                .sharedMemory()
                .register(java.lang.foreign.Arena.global().allocate(4096, 4096), Access.LOCAL_WRITE);
        Map<String, Future<?>> pending = lost.ask();
        long begin = System.nanoTime();
        Process removing = delete(device);
        assertLost(pending, begin, "its device " + device + " was removed");
        assertLost(
                Map.of(
                        "the client's end",
                        lost.client.channel().closeFuture(),
                        "the server's end",
                        serverEnd.closeFuture()),
                begin,
                null);
        awaitWarning(log, "binds its address again, since its device was removed");
        kept.exchange();
        long asked = System.nanoTime();
        CompletableFuture<RdmaClient> again = RdmaClient.builder()
                .provider("verbs")
                .connectTimeout(Duration.ofSeconds(5))
                .connectAsync(lost.address, 7479);
        assertThat(again).failsWithin(LIMIT);
        System.out.println("a new connection: " + again.exceptionNow());
        assertThat(again.exceptionNow()).isInstanceOf(ConnectionException.class).hasMessageContaining(lost.address);
        assertThat(Duration.ofNanos(System.nanoTime() - asked)).isLessThan(Patience.LIMIT);

        // What the program keeps keeps the device, and the log says so.
        awaitWarning(log, device + " was removed, but this process still has it open");
        assertThat(removing.isAlive())
                .as("%s is not gone while the program has memory of it", device)
                .isTrue();
        keptMemory.close();
        keptBuffer.release();
        awaitGone(removing, "the device that had connections and a listener");
        lost.client.close();

        addAgain(device, netInterface);
        lost.unanswered = null;
        Patience.until("the same server takes connections again", () -> isServedBy(lost));
        lost.close();
        // This time there is nothing on it that the connection manager would report the removal to.
        awaitGone(delete(device), "the device that is not in use");
        kept.exchange();
        addAgain(device, netInterface);
        try (Pair back = new Pair(lost.address)) {
            back.exchange();
        }
    }

    private static boolean isServedBy(Pair pair) {
        try (RdmaClient client =
                RdmaClient.builder().provider("verbs").reconnect(false).connect(pair.address, pair.server.port())) {
            assertThat(client.request(new byte[100])).succeedsWithin(LIMIT);
            return true;
        } catch (ConnectionException notYet) {
            return false;
        }
    }

    /** It ends when the last process has closed the device; neither rxe nor siw can take it away from a process. */
    private static Process delete(String device) throws IOException {
        return new ProcessBuilder("rdma", "link", "delete", device).inheritIO().start();
    }

    private static void awaitGone(Process removing, String what) throws InterruptedException {
        assertThat(removing.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS))
                .as("%s is gone while this process goes on", what)
                .isTrue();
        assertThat(removing.exitValue()).isZero();
    }

    private static void addAgain(String device, String netInterface) throws IOException, InterruptedException {
        run("rdma", "link", "add", device, "type", device.substring(0, 3), "netdev", netInterface);
        Patience.until(
                device + " is up", () -> PeerProgram.run(LIMIT, "rdma", "link").contains(device + "/1 state ACTIVE"));
    }

    private static BlockingQueue<String> warnings() {
        BlockingQueue<String> lines = new LinkedBlockingQueue<>();
        AppenderBase<ILoggingEvent> appender = new AppenderBase<>() {
            @Override
            protected void append(ILoggingEvent event) {
                if (event.getLevel().isGreaterOrEqual(Level.WARN)) {
                    lines.add(event.getFormattedMessage());
                }
            }
        };
        appender.start();
        ((Logger) LoggerFactory.getLogger("org.verbena")).addAppender(appender);
        return lines;
    }

    private static void awaitWarning(BlockingQueue<String> log, String text) throws InterruptedException {
        String line;
        do {
            line = log.poll(LIMIT.toSeconds(), TimeUnit.SECONDS);
            assertThat(line).as("a warning that says: %s", text).isNotNull();
        } while (!line.contains(text));
        System.out.println("  " + line);
    }

    /** Sends, requests, reads and writes that cannot be done any more. */
    private static Map<String, Future<?>> post(Pair lost, RemoteMemory table) {
        Map<String, Future<?>> pending = new LinkedHashMap<>();
        RdmaChannel channel = lost.client.channel();
        for (int i = 0; i < PENDING; i++) {
            pending.put("late request " + i, lost.client.request(Unpooled.wrappedBuffer(new byte[100])));
            pending.put("message " + i, lost.client.send(Unpooled.wrappedBuffer(new byte[100])));
        }
        pending.put("a read", channel.read(table, 0, channel.alloc().buffer(100, 100)));
        pending.put("a write", channel.write(table, 0, message(channel)));
        return pending;
    }

    private static ByteBuf message(RdmaChannel channel) {
        return channel.alloc().buffer(100, 100).writeZero(100);
    }

    /** All end in time, and all for that reason. */
    private static void assertLost(Map<String, ? extends Future<?>> pending, long begin, String reason) {
        List<String> wrong = new ArrayList<>();
        Throwable shown = null;
        for (Map.Entry<String, ? extends Future<?>> one : pending.entrySet()) {
            Future<?> future = one.getValue();
            long left = LIMIT.toNanos() - (System.nanoTime() - begin);
            if (!future.awaitUninterruptibly(Math.max(1, left), TimeUnit.NANOSECONDS)) {
                wrong.add(one.getKey() + " is still pending");
            } else if (reason != null) {
                Throwable cause = future.cause();
                boolean isToldWhy = cause instanceof ConnectionException.Lost
                        && String.valueOf(cause.getMessage()).contains(reason);
                if (!isToldWhy) {
                    wrong.add(one.getKey() + ": " + cause);
                }
                shown = shown == null ? cause : shown;
            }
        }
        System.out.printf(
                "%s: ended after %d ms: %s%n",
                pending.keySet(), TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin), shown);
        for (Throwable cause = shown; cause != null; cause = cause.getCause()) {
            System.out.println("  because of " + cause);
        }
        assertThat(wrong).as("expected of all: %s", reason).isEmpty();
    }

    private static void run(String... command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command).inheritIO().start();
        assertThat(process.waitFor(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .isTrue();
        assertThat(process.exitValue()).as(String.join(" ", command)).isZero();
    }
}
