package org.verbena.bench.keys;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
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
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.RegisteredMemory;

/**
 * What a key costs: memory is registered for peers and closed again, as memory of one connection and as memory for
 * several peers, while others are registered. One operation is both.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
@SuppressWarnings("NullAway.Init") // JMH calls open before anything else
public class RegistrationCost {
    private static final int BYTES = 64 << 10;
    private static final Set<Access> RIGHTS = Set.of(Access.LOCAL_WRITE, Access.REMOTE_READ, Access.REMOTE_WRITE);

    /** Whose memory it is. */
    @Param({"shared", "connection"})
    public String owner;

    /** Regions of the same domain meanwhile. */
    @Param({"0", "10000"})
    public int others;

    /** The provider that serves {@code host}. */
    @Param("soft")
    public String provider;

    /** An address of this machine; empty for the loopback one. */
    @Param("")
    public String host;

    private final List<RegisteredMemory> registered = new ArrayList<>();
    private RdmaEventLoopGroup group;
    private RdmaServer server;
    private RdmaClient client;
    private Arena arena;
    private MemorySegment segment;
    private MemoryDomain domain;

    /** Connects. */
    @Setup
    public void open() {
        String address = host.isEmpty() ? InetAddress.getLoopbackAddress().getHostAddress() : host;
        group = new RdmaEventLoopGroup(provider, 1);
        server = RdmaServer.builder().group(group).bind(address, 0, (exchange, message) -> {});
        client = RdmaClient.builder().group(group).connect(address, server.port());
        domain = owner.equals("shared")
                ? client.channel().sharedMemory()
                : client.channel().memory();
        arena = Arena.ofShared();
        segment = arena.allocate(BYTES, 8);
        for (int i = 0; i < others; i++) {
            registered.add(domain.register(segment, RIGHTS));
        }
    }

    /** Disconnects. */
    @TearDown
    public void close() {
        registered.forEach(RegisteredMemory::close);
        client.close();
        server.close();
        group.shutdownGracefully(0, 1, TimeUnit.SECONDS).syncUninterruptibly();
        arena.close();
    }

    /**
     * A region comes and goes.
     *
     * @return its key
     */
    @Benchmark
    public int registerAndClose() {
        try (RegisteredMemory memory = domain.register(segment, RIGHTS)) {
            return memory.remoteKey();
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
                        .include(RegistrationCost.class.getName())
                        .addProfiler(GCProfiler.class)
                        .build())
                .run();
    }
}
