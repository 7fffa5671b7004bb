package org.verbena.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.util.concurrent.FastThreadLocalThread;
import java.lang.foreign.Arena;
import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.spi.ChildJvm;
import org.verbena.transport.spi.Patience;

/** Loops draw keys and nonces without asking the system for random bits, which may take its time. */
public abstract class SecretsSuite {
    /** Which provider. */
    protected abstract String provider();

    @Test
    @Timeout(240)
    void noLoopAsksTheSystemForRandomBits() throws Exception {
        assertThat(ChildJvm.run(List.of(), Program.class, provider()))
                .contains("others asked: true")
                .contains("loops asked: 0");
    }

    /** In a JVM of its own, whose generator of random bits counts. */
    static final class Program {
        private Program() {}

        public static void main(String... arguments) {
            Security.insertProviderAt(new Counting(), 1);
            PreSharedKeys keys = PreSharedKeys.of("2026", new byte[32]);
            try (RdmaServer server = RdmaServer.builder()
                            .provider(arguments[0])
                            .option(RdmaChannelOption.PRE_SHARED_KEYS, keys)
                            .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message.retain()));
                    RdmaClient client = RdmaClient.builder()
                            .provider(arguments[0])
                            .option(RdmaChannelOption.PRE_SHARED_KEYS, keys)
                            .connect("127.0.0.1", server.port());
                    Arena arena = Arena.ofShared()) {
                Patience.await("an answer", client.request(new byte[1]));
                CompletableFuture<Void> registered = CompletableFuture.runAsync(
                        () -> client.channel()
                                .memory()
                                .register(arena.allocate(8), Access.REMOTE_READ)
                                .close(),
                        client.channel().eventLoop());
                Patience.await("a registration on the loop", registered);
            }
            System.out.println("others asked: " + (CountingRandom.OTHERS.get() > 0));
            System.out.println("loops asked: " + CountingRandom.LOOPS.get());
        }
    }

    static final class Counting extends Provider {
        private static final long serialVersionUID = 1L;

        Counting() {
            super("Counting", "1", "a generator that counts");
            put("SecureRandom.Counting", CountingRandom.class.getName());
        }
    }

    /** Made by its name. */
    public static final class CountingRandom extends SecureRandomSpi {
        private static final long serialVersionUID = 1L;

        static final AtomicInteger LOOPS = new AtomicInteger();
        static final AtomicInteger OTHERS = new AtomicInteger();
        private final Random random = new Random(1);

        @Override
        protected void engineSetSeed(byte[] seed) {}

        @Override
        protected void engineNextBytes(byte[] bytes) {
            (Thread.currentThread() instanceof FastThreadLocalThread ? LOOPS : OTHERS).incrementAndGet();
            random.nextBytes(bytes);
        }

        @Override
        protected byte[] engineGenerateSeed(int count) {
            return new byte[count];
        }
    }
}
