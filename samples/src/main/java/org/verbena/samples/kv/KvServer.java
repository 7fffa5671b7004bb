package org.verbena.samples.kv;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaServer;
import org.verbena.samples.command.ByteSize;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.ServerSignals;
import org.verbena.transport.RemoteMemory;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * Keeps values in registered memory. Clients read them by RDMA, and send requests to change them. {@link KvFormat} has
 * the protocol.
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
            description = "The longest value, up to 16m (${DEFAULT-VALUE}). Each slot takes that much memory.")
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
        KvStore store = new KvStore(KvFormat.Geometry.of(slots, maxValueBytes));
        try (RdmaServer server = RdmaServer.builder()
                .provider(options.provider)
                .bind(options.host, options.listenPort(), handler(store))) {
            PrintWriter out = spec.commandLine().getOut();
            out.println("kv-server listens on " + server.localAddress() + " (" + server.provider() + "): " + slots
                    + " slots for values of up to " + maxValueBytes + " bytes, "
                    + store.geometry().memoryBytes() / 1024 + " KiB");
            out.flush();
            new CountDownLatch(1).await();
        }
        return CommandLine.ExitCode.OK;
    }

    /**
     * Answers requests. Runs on the event loops of all connections: a put is so short that other loops may wait for it.
     */
    static MessageHandler handler(KvStore store) {
        AtomicLong requests = new AtomicLong();
        return (exchange, request) -> {
            long served = requests.incrementAndGet();
            byte[] answer;
            try {
                answer = switch (request.readByte()) {
                    case KvFormat.OPEN -> open(store, exchange.channel(), served);
                    case KvFormat.PUT -> put(store, request);
                    default -> throw new CommandFailure("an unknown request");
                };
            } catch (CommandFailure refused) {
                byte[] reason = String.valueOf(refused.getMessage()).getBytes(StandardCharsets.UTF_8);
                answer = ByteBuffer.allocate(1 + reason.length)
                        .put(KvFormat.FAILED)
                        .put(reason)
                        .array();
            }
            exchange.reply(answer);
        };
    }

    private static byte[] open(KvStore store, RdmaChannel channel, long served) {
        return ByteBuffer.allocate(1 + 2 * Integer.BYTES + Long.BYTES + RemoteMemory.ENCODED_BYTES)
                .put(KvFormat.OK)
                .putInt(store.geometry().slots())
                .putInt(store.geometry().slotBytes())
                .putLong(served)
                .put(store.tokenFor(channel).encode())
                .array();
    }

    private static byte[] put(KvStore store, ByteBuf request) {
        int keyBytes = request.readUnsignedByte();
        if (keyBytes < 1 || keyBytes > request.readableBytes()) {
            throw new CommandFailure("a key of " + keyBytes + " bytes");
        }
        byte[] key = ByteBufUtil.getBytes(request.readSlice(keyBytes));
        store.put(key, ByteBufUtil.getBytes(request));
        return new byte[] {KvFormat.OK};
    }
}
