package org.verbena.tools.interop.pingpong;

import java.io.IOException;
import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.QueuePairAddress;
import org.verbena.cm.QueuePairPath;
import org.verbena.cm.TcpQueuePairExchange;
import org.verbena.cm.TcpQueuePairExchange.End;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.PortNumber;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.work.SendFlags;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/**
 * One SEND, one RDMA READ and one RDMA WRITE over a queue pair that is connected by hand: the shortest complete program
 * on the raw bindings, a counterpart of RDMA_RC_example of the RDMA Aware Networks Programming manual, with which it
 * interoperates.
 *
 * <pre>{@code
 *   server                                            client
 *   posts nothing                                     posts a receive
 *        <--- TCP: buffer, key, queue pair, LID and GID of each --->
 *        <--- TCP: at point Q, the receive is posted --->
 *   SEND "a message sent"                ------->     prints it
 *   puts "a text to read" into its buffer
 *        <--- TCP: at point R --->
 *                                        <-------     RDMA READ, prints it
 *                                        <-------     RDMA WRITE "a text written"
 *        <--- TCP: at point W, the write has completed --->
 *   prints what is in its buffer
 * }</pre>
 *
 * <p>The server is not notified of the READ and the WRITE: that is what one-sided means, and why there are points.
 */
@Command(
        name = "rdma-rc",
        description = "A send, a read and a write over a queue pair connected by hand, as RDMA_RC_example.")
public final class RdmaRc implements Callable<Integer> {
    private static final int BUFFER_BYTES = 64;
    /** As long as C's buffers in all editions of the example: a text of 14 characters and C's zero byte. */
    private static final int TEXT_BYTES = 15;
    /** The packet sequence number with which both ends begin, as in C. */
    private static final int FIRST_PACKET = 0;

    private static final long WORK_ID = 1;
    private static final int EXCHANGE_MILLIS = 30_000;
    private static final long COMPLETION_NANOS = 10_000_000_000L;

    @Parameters(
            index = "0",
            arity = "0..1",
            paramLabel = "HOST",
            description = "The server; without it this side is the server.")
    private @Nullable String host;

    @Option(
            names = {"-p", "--port"},
            defaultValue = "19875",
            converter = PortNumber.class,
            description = "TCP port to exchange addresses on (${DEFAULT-VALUE}).")
    private int tcpPort;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ByHandOptions byHand;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws IOException {
        PingPongOptions.requireRange(spec, "port", tcpPort, host == null ? 0 : 1, 65535);
        try (Context context =
                byHand.open()) { // before waiting for a peer: without a device there is nothing to wait for
            ByHandOptions.meet(host, tcpPort, EXCHANGE_MILLIS, exchange -> run(context, exchange));
        }
        return CommandLine.ExitCode.OK;
    }

    private void run(Context context, TcpQueuePairExchange exchange) throws IOException {
        QueuePairPath path = QueuePairPath.of(byHand.devicePort, byHand.gidIndex, Mtu.MTU_256);
        try (ProtectionDomain domain = context.allocateProtectionDomain();
                CompletionQueue completions = context.createCompletionQueue(4);
                QueuePair queuePair = domain.createQueuePair(
                        QueuePairOptions.reliable(completions, new QueuePairCapabilities(1, 1, 1, 1, 0)));
                Arena arena = Arena.ofShared();
                MemoryRegion region = domain.registerMemory(
                        arena.allocate(BUFFER_BYTES),
                        Set.of(AccessFlag.LOCAL_WRITE, AccessFlag.REMOTE_READ, AccessFlag.REMOTE_WRITE));
                WorkCompletions polled = new WorkCompletions(1)) {
            path.initialize(queuePair, AccessFlag.REMOTE_READ, AccessFlag.REMOTE_WRITE);
            if (host != null) {
                queuePair
                        .receiveQueue()
                        .receive(WORK_ID)
                        .sge(region, 0, BUFFER_BYTES)
                        .flush();
            }
            QueuePairAddress found = PingPongSession.addressOf(path, queuePair);
            QueuePairAddress local =
                    new QueuePairAddress(found.lid(), found.queuePairNumber(), FIRST_PACKET, found.gid());
            End remote = exchange.ends(new End(local, region.address(), region.remoteKey()));
            path.connect(queuePair, local, remote.queuePair(), 1);
            exchange.synchronize('Q');
            if (host == null) {
                serve(exchange, queuePair, completions, region, polled);
            } else {
                visit(exchange, queuePair, completions, region, remote, polled);
            }
        }
    }

    private void serve(
            TcpQueuePairExchange exchange,
            QueuePair queuePair,
            CompletionQueue completions,
            MemoryRegion region,
            WorkCompletions polled)
            throws IOException {
        put(region.segment(), "a message sent");
        queuePair
                .sendQueue()
                .send(WORK_ID, SendFlags.SIGNALED)
                .sge(region, 0, TEXT_BYTES)
                .flush();
        awaitCompletion(completions, polled);
        put(region.segment(), "a text to read");
        exchange.synchronize('R');
        exchange.synchronize('W');
        print("written here: " + textOf(region));
    }

    private void visit(
            TcpQueuePairExchange exchange,
            QueuePair queuePair,
            CompletionQueue completions,
            MemoryRegion region,
            End remote,
            WorkCompletions polled)
            throws IOException {
        awaitCompletion(completions, polled);
        print("received: " + textOf(region));
        exchange.synchronize('R');
        queuePair
                .sendQueue()
                .read(WORK_ID, SendFlags.SIGNALED, remote.bufferAddress(), remote.remoteKey())
                .sge(region, 0, TEXT_BYTES)
                .flush();
        awaitCompletion(completions, polled);
        print("read: " + textOf(region));
        put(region.segment(), "a text written");
        queuePair
                .sendQueue()
                .write(WORK_ID, SendFlags.SIGNALED, remote.bufferAddress(), remote.remoteKey())
                .sge(region, 0, TEXT_BYTES)
                .flush();
        awaitCompletion(completions, polled);
        exchange.synchronize('W');
    }

    /** The text that the peer has written, up to the first zero byte. */
    private static String textOf(MemoryRegion region) {
        String all = new String(region.segment().toArray(ValueLayout.JAVA_BYTE), StandardCharsets.UTF_8);
        int end = all.indexOf('\0');
        return end < 0 ? all : all.substring(0, end);
    }

    private static void put(MemorySegment buffer, String text) {
        buffer.fill((byte) 0);
        buffer.setString(0, text, StandardCharsets.UTF_8);
    }

    private static void awaitCompletion(CompletionQueue completions, WorkCompletions polled) {
        long begin = System.nanoTime();
        while (completions.poll(polled) == 0) {
            if (System.nanoTime() - begin > COMPLETION_NANOS) {
                throw new CommandFailure("no completion in 10 s: is the peer still running?");
            }
            Thread.onSpinWait();
        }
        if (!polled.isSuccess(0)) {
            throw new CommandFailure(polled.describe(0));
        }
    }

    private void print(String line) {
        PrintWriter out = spec.commandLine().getOut();
        out.println(line);
        out.flush();
    }
}
