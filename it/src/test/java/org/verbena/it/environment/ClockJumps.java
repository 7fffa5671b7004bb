package org.verbena.it.environment;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.transport.PreSharedKeys;

/**
 * The program that is run: the wall clock jumps by an hour and back while one connection is busy and another is idle on
 * each provider, and then new ones are made. The monotonic clock does not jump. Needs libfaketime: its control file
 * is the first argument.
 */
public final class ClockJumps {
    private static final int KEEP_ALIVE_MILLIS = 2000;

    /** After the first half an idle connection sends a PING, and after the second it is lost if no PONG has come. */
    private static final int IDLE_MILLIS = 2 * KEEP_ALIVE_MILLIS + 200;

    private static final long MIN_JUMP_MILLIS = Duration.ofMinutes(59).toMillis();
    private static final int MESSAGE_BYTES = 4000;
    private static final PreSharedKeys KEYS =
            PreSharedKeys.of("clock", "sixteen bytes or more".getBytes(StandardCharsets.US_ASCII));

    private ClockJumps() {}

    /** Prints a line for each provider, or what was thrown; ends with 1 if something was. */
    public static void main(String[] arguments) throws Exception {
        Path control = Path.of(arguments[0]);
        List<String> providers = List.of(arguments).subList(1, arguments.length);
        try (ExecutorService threads = Executors.newCachedThreadPool()) {
            List<Traffic> all = new ArrayList<>();
            for (String provider : providers) {
                all.add(new Traffic(provider, threads));
            }
            for (String offset : List.of("+1h", "+0")) {
                jump(control, offset);
                List<Callable<Void>> checks =
                        all.stream().<Callable<Void>>map(each -> each::check).toList();
                for (Future<Void> check : threads.invokeAll(checks)) {
                    check.get();
                }
            }
            for (Traffic each : all) {
                each.close();
                System.out.println(each.provider + " keeps its connections");
            }
        } catch (Throwable thrown) {
            thrown.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    private static void jump(Path control, String offset) throws Exception {
        long wall = System.currentTimeMillis();
        long monotonic = System.nanoTime();
        Path next = Files.writeString(control.resolveSibling("next"), offset + "\n");
        Files.move(next, control, StandardCopyOption.ATOMIC_MOVE);
        while (Math.abs(System.currentTimeMillis() - wall) < MIN_JUMP_MILLIS) {
            if (System.nanoTime() - monotonic > TimeUnit.SECONDS.toNanos(30)) {
                throw new IllegalStateException("the wall clock did not jump to " + offset);
            }
            Thread.sleep(10);
        }
        if (System.nanoTime() - monotonic > TimeUnit.MINUTES.toNanos(30)) {
            throw new IllegalStateException("the monotonic clock jumped, too");
        }
        System.out.println("the clock is at " + offset);
    }

    private static final class Traffic {
        private final String provider;
        private final RdmaServer server;
        private final RdmaClient idle;
        private final RdmaClient busy;
        private final AtomicBoolean isOver = new AtomicBoolean();
        private final Future<?> requests;

        Traffic(String provider, ExecutorService threads) throws Exception {
            this.provider = provider;
            server = RdmaServer.builder()
                    .provider(provider)
                    .option(RdmaChannelOption.PRE_SHARED_KEYS, KEYS)
                    .option(RdmaChannelOption.KEEP_ALIVE_MILLIS, KEEP_ALIVE_MILLIS)
                    .bind("127.0.0.1", 0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
            idle = connect();
            busy = connect();
            CountDownLatch begun = new CountDownLatch(1);
            requests = threads.submit(() -> {
                while (!isOver.get()) {
                    ask(busy);
                    begun.countDown();
                }
                return null;
            });
            begun.await();
        }

        private RdmaClient connect() {
            return RdmaClient.builder()
                    .provider(provider)
                    .reconnect(false)
                    .option(RdmaChannelOption.PRE_SHARED_KEYS, KEYS)
                    .option(RdmaChannelOption.KEEP_ALIVE_MILLIS, KEEP_ALIVE_MILLIS)
                    .connect("127.0.0.1", server.port());
        }

        private static void ask(RdmaClient client) throws Exception {
            byte[] sent = new byte[MESSAGE_BYTES];
            Arrays.fill(sent, (byte) 7);
            if (!Arrays.equals(sent, client.request(sent).get(30, TimeUnit.SECONDS))) {
                throw new AssertionError("other bytes came back");
            }
        }

        Void check() throws Exception {
            try (RdmaClient next = connect()) {
                ask(next);
            }
            Thread.sleep(IDLE_MILLIS);
            ask(idle);
            if (requests.isDone()) {
                requests.get();
            }
            return null;
        }

        void close() throws Exception {
            isOver.set(true);
            requests.get();
            idle.close();
            busy.close();
            server.close();
        }
    }
}
