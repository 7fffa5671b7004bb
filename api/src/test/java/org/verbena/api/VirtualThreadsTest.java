package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.AppenderBase;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.request.HandlerLog;
import org.verbena.api.internal.request.Messenger;
import org.verbena.api.internal.request.VirtualHandlers;
import org.verbena.transport.ConnectionException;
import org.verbena.transport.RequestException;
import org.verbena.transport.spi.Patience;

/** Handlers of the short form on virtual threads, and what is logged of those that block an event loop. */
class VirtualThreadsTest extends ApiSuite {
    @Override
    protected String provider() {
        return "soft";
    }

    private RdmaServer serve(MessageHandler handler) {
        return RdmaServer.builder().group(group).virtualThreads(true).bind(host(), 0, handler);
    }

    private RdmaClient client(RdmaServer server) {
        return RdmaClient.builder().group(group).connect(host(), server.port());
    }

    @Test
    void aBlockedHandlerHoldsUpNoOther() throws Exception {
        CountDownLatch release = new CountDownLatch(1);
        MessageHandler blocks = MessageHandler.ofBytes((exchange, message) -> {
            assertThat(Thread.currentThread().isVirtual()).isTrue();
            if (message.length == 1) {
                release.await();
            }
            exchange.reply(message);
        });
        try (RdmaServer server = serve(blocks);
                RdmaClient client = client(server);
                RdmaClient other = client(server)) {
            List<CompletableFuture<byte[]>> blocked = new ArrayList<>();
            for (int i = 0; i < 10; i++) {
                blocked.add(client.request(new byte[1]));
            }
            client.send(new byte[1]);
            assertThat(Patience.await("a reply on the same connection", client.request(new byte[2])))
                    .hasSize(2);
            assertThat(Patience.await("a reply on another connection", other.request(new byte[3])))
                    .hasSize(3);
            assertThat(blocked).noneMatch(CompletableFuture::isDone);
            release.countDown();
            for (CompletableFuture<byte[]> one : blocked) {
                assertThat(Patience.await("a reply", one)).hasSize(1);
            }
        }
    }

    @Test
    void messagesOfAConnectionAreHandledInOrderOneByOne() {
        int count = 3 * VirtualHandlers.MAX;
        BlockingQueue<Integer> came = new LinkedBlockingQueue<>();
        AtomicInteger atOnce = new AtomicInteger();
        AtomicInteger most = new AtomicInteger();
        MessageHandler notes = MessageHandler.ofBuffer((exchange, message) -> {
            most.accumulateAndGet(atOnce.incrementAndGet(), Math::max);
            int number = message.getInt();
            if (number % 100 == 0) {
                Thread.yield();
            }
            came.add(number);
            atOnce.decrementAndGet();
        });
        try (RdmaServer server = serve(notes);
                RdmaClient client = client(server)) {
            for (int i = 0; i < count; i++) {
                client.send(ByteBuffer.allocate(4).putInt(0, i));
            }
            for (int i = 0; i < count; i++) {
                assertThat(Patience.take("a message", came)).isEqualTo(i);
            }
            assertThat(most).hasValue(1);
        }
    }

    /** Requests and messages of one connection take turns, and another connection does not wait for them. */
    @Test
    void requestsAreHandledInOrderIfTheProgramWantsIt() {
        int count = 500;
        BlockingQueue<Integer> came = new LinkedBlockingQueue<>();
        Semaphore turns = new Semaphore(0);
        MessageHandler blocks = MessageHandler.ofBuffer((exchange, message) -> {
            int number = message.getInt();
            if (number >= 0) {
                turns.acquire();
                came.add(number);
            }
            if (exchange.isRequest()) {
                exchange.reply(new byte[number < 0 ? 2 : 1]);
            }
        });
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .virtualThreads(true)
                        .orderedHandlers(true)
                        .interruptCancelled(true)
                        .bind(host(), 0, blocks);
                RdmaClient client = client(server);
                RdmaClient other = client(server)) {
            List<CompletableFuture<?>> sent = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                ByteBuffer number = ByteBuffer.allocate(4).putInt(0, i);
                sent.add(i % 3 == 0 ? client.send(number) : client.request(number));
            }
            assertThat(Patience.await(
                            "another connection",
                            other.request(ByteBuffer.allocate(4).putInt(0, -1))))
                    .matches(reply -> reply.remaining() == 2);
            assertThat(came).isEmpty();
            sent.get(count - 1).cancel(false); // number 499, a request: 499 % 3 is 1
            Patience.until("the server has the cancel", () -> server.abandonedRequests() == 1);
            turns.release(count);
            for (int i = 0; i < count - 1; i++) {
                assertThat(Patience.take("a message", came)).isEqualTo(i);
            }
            for (int i = 0; i < count - 1; i++) {
                Patience.await("a reply", sent.get(i));
            }
            assertThat(came).isEmpty();
        }
    }

    @Test
    void orderNeedsVirtualThreadsAndNoLimit() {
        RdmaServer.Builder builder = RdmaServer.builder().group(group).orderedHandlers(true);
        assertThatThrownBy(() -> builder.bind(host(), 0, (exchange, message) -> {}))
                .isInstanceOf(IllegalStateException.class);
        builder.virtualThreads(true).maxHandlers(1, 1);
        assertThatThrownBy(() -> builder.bind(host(), 0, (exchange, message) -> {}))
                .isInstanceOf(IllegalStateException.class);
    }

    /** A client may have only so many handlers at work; the rest of what it sends waits outside. */
    @Test
    void aClientWhoseHandlersAreBusyIsNotRead() {
        int count = 4 * VirtualHandlers.MAX;
        Semaphore turns = new Semaphore(0);
        AtomicInteger begun = new AtomicInteger();
        MessageHandler blocks = MessageHandler.ofBytes((exchange, message) -> {
            begun.incrementAndGet();
            turns.acquire();
            exchange.reply(message);
        });
        try (RdmaServer server = serve(blocks);
                RdmaClient client = client(server)) {
            List<CompletableFuture<byte[]>> requests = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                requests.add(client.request(new byte[] {(byte) i}));
            }
            Patience.until("the handlers are busy", () -> begun.get() >= VirtualHandlers.MAX);
            RdmaChannel accepted = (RdmaChannel) server.connections().iterator().next();
            // Reading has stopped when no more begin; threads for what was read may begin late.
            int reached;
            do {
                reached = begun.get();
                settle(client.channel(), accepted);
            } while (begun.get() > reached);
            assertThat(reached).as("with what was on its way").isLessThan(2 * VirtualHandlers.MAX);
            turns.release(count);
            for (int i = 0; i < count; i++) {
                assertThat(Patience.await("a reply", requests.get(i))).containsExactly((byte) i);
            }
            assertThat(accepted.config().isAutoRead()).as("the program's own").isTrue();
        }
    }

    /** Messages are counted by their bytes as well: few long ones fill memory before many short ones do. */
    @Test
    void aClientWhoseHandlersHoldLongMessagesIsNotRead() {
        int messageBytes = 1 << 20;
        int held = (int) (VirtualHandlers.MAX_BYTES / messageBytes);
        int count = held + held / 2;
        Semaphore turns = new Semaphore(0);
        AtomicInteger begun = new AtomicInteger();
        MessageHandler blocks = (exchange, message) -> {
            begun.incrementAndGet();
            turns.acquire();
            exchange.reply(message.readRetainedSlice(1));
        };
        try (RdmaServer server = serve(blocks);
                RdmaClient client = client(server)) {
            List<CompletableFuture<byte[]>> requests = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                byte[] message = new byte[messageBytes];
                message[0] = (byte) i;
                requests.add(client.request(message));
            }
            Patience.until("the handlers are busy", () -> begun.get() >= held);
            RdmaChannel accepted = (RdmaChannel) server.connections().iterator().next();
            settle(client.channel(), accepted);
            assertThat(begun).as("with what was on its way").hasValueLessThan(held + held / 4);
            turns.release(count);
            for (int i = 0; i < count; i++) {
                assertThat(Patience.await("a reply", requests.get(i))).containsExactly((byte) i);
            }
        }
    }

    @Test
    void aHandlersExceptionFailsTheRequest() {
        MessageHandler fails = (exchange, message) -> {
            switch (message.readableBytes()) {
                case 1 -> throw new IllegalArgumentException("not that");
                case 2 -> exchange.reply(message); // without retain
                case 3 -> message.release();
                case 4 -> throw new AssertionError("an error");
                default -> exchange.reply(message.retain());
            }
        };
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .virtualThreads(true)
                        .discloseErrors(true)
                        .bind(host(), 0, fails);
                RdmaClient client = client(server)) {
            String[] texts = {"not that", "reply(message.retain())", "reply(message.retain())", "an error"};
            for (int bytes = 1; bytes <= 4; bytes++) {
                assertThat(failure("a request", client.request(new byte[bytes])))
                        .isInstanceOf(RequestException.Failed.class)
                        .hasMessageContaining(texts[bytes - 1]);
            }
            assertThat(Patience.await("a reply", client.request(new byte[5]))).hasSize(5);
        }
    }

    @Test
    void aHandlerMayKeepItsMessage() {
        BlockingQueue<ByteBuf> kept = new LinkedBlockingQueue<>();
        try (RdmaServer server = serve((exchange, message) -> kept.add(message.retain()));
                RdmaClient client = client(server)) {
            for (int i = 0; i < 10; i++) {
                client.send(patternBytes(3000, i));
            }
            for (int i = 0; i < 10; i++) {
                ByteBuf message = Patience.take("a message", kept);
                Patience.until("the handler has returned", () -> message.refCnt() == 1);
                assertThat(message).isEqualTo(Unpooled.wrappedBuffer(patternBytes(3000, i)));
                message.release();
            }
        }
    }

    @Test
    void handlersOutliveTheirConnection() {
        CountDownLatch release = new CountDownLatch(1);
        BlockingQueue<CompletableFuture<Void>> answers = new LinkedBlockingQueue<>();
        BlockingQueue<Boolean> interrupted = new LinkedBlockingQueue<>();
        AtomicInteger begun = new AtomicInteger();
        MessageHandler slow = MessageHandler.ofBuffer((exchange, message) -> {
            begun.incrementAndGet();
            release.await();
            interrupted.add(Thread.currentThread().isInterrupted());
            assertThat(message).isEqualTo(ByteBuffer.wrap(patternBytes(message.remaining(), 7)));
            answers.add(exchange.isRequest() ? exchange.reply(message) : exchange.send(message));
        });
        RdmaServer server = RdmaServer.builder()
                .provider(provider())
                .threadsPerProvider(1)
                .virtualThreads(true)
                .bind(host(), 0, slow);
        try (RdmaClient client = client(server)) {
            client.send(patternBytes(100, 7));
            client.send(patternBytes(200, 7));
            List<CompletableFuture<byte[]>> requests =
                    List.of(client.request(patternBytes(300, 7)), client.request(patternBytes(20_000, 7)));
            Patience.until("the handlers run", () -> begun.get() == 3);
            server.close();
            for (CompletableFuture<byte[]> request : requests) {
                assertThat(failure("a request whose server closed", request)).isInstanceOf(ConnectionException.class);
            }
            release.countDown();
            for (int i = 0; i < 4; i++) {
                assertThat(failure("an answer to nobody", Patience.take("an answer", answers)))
                        .isInstanceOf(ConnectionException.class)
                        .hasMessageContaining("this end has closed the connection");
                assertThat(Patience.take("whether it was interrupted", interrupted))
                        .isFalse();
            }
        }
    }

    @Test
    void aHandlerMayCloseItsServerAndWait() {
        CompletableFuture<RdmaServer> itself = new CompletableFuture<>();
        CompletableFuture<Void> closed = new CompletableFuture<>();
        MessageHandler closes = (exchange, message) -> {
            itself.join().close();
            closed.complete(null);
        };
        RdmaServer server =
                RdmaServer.builder().provider(provider()).virtualThreads(true).bind(host(), 0, closes);
        itself.complete(server);
        try (RdmaClient client = client(server)) {
            RdmaChannel connection = client.channel();
            client.send(new byte[1]);
            Patience.await("the handler", closed);
            done("the client's connection", connection.closeFuture());
        }
    }

    @Test
    void aClientsHandlerMayWaitForReplies() {
        BlockingQueue<Integer> lengths = new LinkedBlockingQueue<>();
        AtomicReference<RdmaClient> itself = new AtomicReference<>();
        MessageHandler asksBack = MessageHandler.ofBytes((exchange, message) ->
                lengths.add(itself.get().request(new byte[message.length + 10]).join().length));
        try (RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .bind(host(), 0, MessageHandler.ofBytes((exchange, message) -> {
                            if (exchange.isRequest()) {
                                exchange.reply(message);
                            } else {
                                exchange.send(message);
                            }
                        }));
                RdmaClient client = RdmaClient.builder()
                        .group(group)
                        .virtualThreads(true)
                        .onMessage(asksBack)
                        .connect(host(), server.port())) {
            itself.set(client);
            for (int i = 0; i < 20; i++) {
                client.send(new byte[i]);
            }
            for (int i = 0; i < 20; i++) {
                assertThat(Patience.take("a reply within a handler", lengths)).isEqualTo(i + 10);
            }
        }
    }

    @Test
    void aHandlerThatBlocksItsLoopIsLogged() {
        BlockingQueue<String> warnings = new LinkedBlockingQueue<>();
        AppenderBase<ILoggingEvent> appender = new AppenderBase<>() {
            @Override
            protected void append(ILoggingEvent event) {
                if (event.getLevel() == Level.WARN) {
                    warnings.add(event.getFormattedMessage());
                }
            }
        };
        Logger logger = (Logger) LoggerFactory.getLogger(Messenger.class);
        appender.start();
        logger.addAppender(appender);
        MessageHandler blocks = (exchange, message) -> {
            Patience.sleep(Duration.ofNanos(HandlerLog.SLOW_NANOS).plusMillis(1).toMillis());
            exchange.reply(message.retain());
        };
        try (RdmaServer server = RdmaServer.builder().group(group).bind(host(), 0, blocks);
                RdmaClient client = client(server)) {
            Patience.until(
                    "a warning",
                    () -> { // at once, but where another test has just had one
                        Patience.await("a reply", client.request(new byte[1]));
                        return !warnings.isEmpty();
                    });
            assertThat(warnings.poll()).contains("handlers kept the event loop for", "virtualThreads(true)");
        } finally {
            logger.detachAppender(appender);
        }
    }
}
