package org.verbena.samples.kv;

import io.netty.buffer.ByteBuf;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.verbena.api.Exchange;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaServer;
import org.verbena.samples.command.ByteSize;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.ServerSignals;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * Keeps values in registered memory. Clients read them without its help, and ask it to change them. {@link KvFormat}
 * has the protocol.
 */
@Command(
        name = "kv-server",
        description = {
            "Serves values that kv-client reads with RDMA READ, without involving this program.",
            "Values are in memory only. Anyone who can connect can read and change all of them."
        })
public final class KvServer implements Callable<Integer> {
    private static final int MAX_SLOTS = 1 << 24;
    private static final int MAX_VALUE_BYTES = 16 << 20;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Option(
            names = "--slots",
            paramLabel = "N",
            defaultValue = "1024",
            description = "Slots for keys; twice the number of keys is a good choice (${DEFAULT-VALUE}).")
    private int slots;

    @Option(
            names = "--value-size",
            paramLabel = "BYTES",
            defaultValue = "1k",
            converter = ByteSize.class,
            description = "The longest value, up to 16m (${DEFAULT-VALUE}). Each slot takes twice that much memory.")
    private int maxValueBytes;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        if (slots < 1 || slots > MAX_SLOTS || maxValueBytes < 1 || maxValueBytes > MAX_VALUE_BYTES) {
            throw new CommandLine.ParameterException(
                    spec.commandLine(),
                    "--slots must be 1 to " + MAX_SLOTS + " and --value-size 1 to 16m; they are " + slots + ", "
                            + maxValueBytes);
        }
        ServerSignals.endWithZero();
        KvFormat.Geometry geometry = KvFormat.Geometry.of(slots, maxValueBytes);
        try (Service service = new Service(options.provider, options.host, options.listenPort(), geometry)) {
            PrintWriter out = spec.commandLine().getOut();
            out.println("kv-server listens on " + service.server.localAddress() + " (" + service.server.provider()
                    + "): " + slots + " slots for values of up to " + maxValueBytes + " bytes, "
                    + geometry.dataBytes() / 1024 + " KiB");
            out.flush();
            new CountDownLatch(1).await();
        }
        return CommandLine.ExitCode.OK;
    }

    /**
     * The server itself. Each provider has an event loop, and all of them use the store, one at a time: a request is so
     * short that a loop may wait for another one's.
     */
    static final class Service implements AutoCloseable {
        private final KvStore store;
        private final RdmaServer server;

        // Guarded by this, as is the store.
        private long requests;
        private long puts;
        private int lastOwner;

        Service(String provider, String host, int port, KvFormat.Geometry geometry) {
            store = new KvStore(geometry);
            try {
                server = RdmaServer.builder()
                        .provider(provider)
                        .threadsPerProvider(1)
                        .bind(host, port, this::onRequest);
            } catch (RuntimeException failure) {
                store.close();
                throw failure;
            }
            server.channel()
                    .eventLoop()
                    .scheduleAtFixedRate(
                            this::tick, KvFormat.CLOCK_STEP_MILLIS, KvFormat.CLOCK_STEP_MILLIS, TimeUnit.MILLISECONDS);
        }

        int port() {
            return server.port();
        }

        KvStore store() {
            return store;
        }

        private synchronized void tick() {
            store.tick();
        }

        private void onRequest(Exchange exchange, ByteBuf message) {
            byte[] answer;
            try {
                answer = answer(exchange.channel(), message);
            } catch (CommandFailure refused) {
                byte[] reason = String.valueOf(refused.getMessage()).getBytes(StandardCharsets.UTF_8);
                answer = ByteBuffer.allocate(1 + reason.length)
                        .put(KvFormat.FAILED)
                        .put(reason)
                        .array();
            }
            exchange.send(answer);
        }

        private synchronized byte[] answer(RdmaChannel channel, ByteBuf message) {
            requests++;
            byte kind = message.readByte();
            return switch (kind) {
                case KvFormat.LAYOUT -> layout(channel, message);
                case KvFormat.PUT -> put(message);
                case KvFormat.COUNTERS ->
                    ByteBuffer.allocate(1 + 3 * Long.BYTES)
                            .put(KvFormat.OK)
                            .putLong(requests)
                            .putLong(puts)
                            .putLong(store.keys())
                            .array();
                default -> throw new CommandFailure("a request of kind " + kind + " is unknown");
            };
        }

        private byte[] layout(RdmaChannel channel, ByteBuf message) {
            int version = message.readByte();
            if (version != KvFormat.VERSION) {
                throw new CommandFailure("the client speaks version " + version + ", this server " + KvFormat.VERSION);
            }
            lastOwner = lastOwner % KvFormat.MAX_OWNER + 1;
            byte[][] tokens = store.tokens(
                            channel.sharedMemory(), channel.capabilities().atomics())
                    .toArray(byte[][]::new);
            ByteBuffer answer = ByteBuffer.allocate(1 + 3 * Integer.BYTES + tokens.length * tokens[0].length)
                    .put(KvFormat.OK)
                    .putInt(store.geometry().slots())
                    .putInt(store.geometry().recordBytes())
                    .putInt(lastOwner);
            for (byte[] token : tokens) {
                answer.put(token);
            }
            return answer.array();
        }

        private byte[] put(ByteBuf message) {
            long lockWord = message.readLong();
            int keyBytes = message.readUnsignedShort();
            if (keyBytes < 1 || keyBytes > KvFormat.MAX_KEY_BYTES || keyBytes > message.readableBytes()) {
                throw new CommandFailure("a key of " + keyBytes + " bytes");
            }
            byte[] key = new byte[keyBytes];
            message.readBytes(key);
            long version = store.put(key, message.nioBuffer(), lockWord);
            puts++;
            return ByteBuffer.allocate(1 + Long.BYTES)
                    .put(KvFormat.OK)
                    .putLong(version)
                    .array();
        }

        @Override
        public void close() {
            server.close();
            store.close();
        }
    }
}
