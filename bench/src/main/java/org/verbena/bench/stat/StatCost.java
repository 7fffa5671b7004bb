package org.verbena.bench.stat;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.Future;
import io.netty.util.concurrent.GenericFutureListener;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.CommandLineOptionException;
import org.openjdk.jmh.runner.options.CommandLineOptions;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.transport.stat.StatFile;

/**
 * What {@code verbena stat} costs the processes that it shows: requests and replies on the software provider, both ends
 * in one JVM, with the file of counters and without it ({@code -Dorg.verbena.stat=false}).
 *
 * <p>One operation is a request and its reply, {@value #WINDOW} of them at a time. Connections that do nothing are
 * copied along with the one that is busy.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
@SuppressWarnings("NullAway.Init") // JMH calls open before anything else
public class StatCost {
    private static final int REQUESTS = 1000;
    private static final int WINDOW = 16;
    private static final int MESSAGE_BYTES = 64;

    /** Whether there is a file of counters. */
    @Param({"true", "false"})
    public String stat;

    /** Connections on the same loops that do nothing. */
    @Param({"0", "100"})
    public int idleConnections;

    private RdmaEventLoopGroup serverLoop;
    private RdmaEventLoopGroup clientLoop;
    private RdmaServer server;
    private RdmaClient client;
    private final List<RdmaClient> idle = new ArrayList<>();
    private final Requests requests = new Requests();

    /** Connects. */
    @Setup
    public void open() {
        System.setProperty(StatFile.PROPERTY, stat); // each combination has a JVM of its own
        serverLoop = new RdmaEventLoopGroup("soft", 1);
        clientLoop = new RdmaEventLoopGroup("soft", 1);
        server = RdmaServer.builder()
                .group(serverLoop)
                .bind("127.0.0.1", 0, (exchange, message) -> exchange.reply(message.retain()));
        for (int i = 0; i < idleConnections; i++) {
            idle.add(connect());
        }
        client = connect();
        if ((StatFile.own() != null) != Boolean.parseBoolean(stat)) {
            throw new IllegalStateException("the file of counters is not as -Dorg.verbena.stat=" + stat + " says");
        }
    }

    private RdmaClient connect() {
        return RdmaClient.builder().group(clientLoop).connect("127.0.0.1", server.port());
    }

    /** Disconnects. */
    @TearDown
    public void close() {
        client.close();
        idle.forEach(RdmaClient::close);
        server.close();
        clientLoop.close();
        serverLoop.close();
    }

    /**
     * Requests and their replies.
     *
     * @throws InterruptedException never
     */
    @Benchmark
    @OperationsPerInvocation(REQUESTS)
    public void request() throws InterruptedException {
        client.channel().eventLoop().execute(requests);
        requests.done.acquire();
    }

    /** On its loop; {@link #run()} begins a series. */
    private final class Requests implements Runnable, GenericFutureListener<Future<ByteBuf>> {
        private final Semaphore done = new Semaphore(0);
        private int left;
        private int pending;

        @Override
        public void run() {
            left = REQUESTS;
            while (pending < WINDOW) {
                send();
            }
        }

        private void send() {
            left--;
            pending++;
            client.request(client.channel().alloc().buffer(MESSAGE_BYTES).writeZero(MESSAGE_BYTES))
                    .addListener(this);
        }

        @Override
        public void operationComplete(Future<ByteBuf> reply) {
            pending--;
            reply.getNow().release();
            if (left > 0) {
                send();
            } else if (pending == 0) {
                done.release();
            }
        }
    }

    /**
     * Runs it with the profiler that counts allocations.
     *
     * @param args JMH's options
     * @throws RunnerException it failed
     * @throws CommandLineOptionException the options are wrong
     */
    public static void main(String[] args) throws RunnerException, CommandLineOptionException {
        new Runner(new OptionsBuilder()
                        .parent(new CommandLineOptions(args))
                        .include(StatCost.class.getName())
                        .addProfiler(GCProfiler.class)
                        .build())
                .run();
    }
}
