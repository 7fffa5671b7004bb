package org.verbena.bench.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
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
import org.verbena.bench.CLibrary;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.memory.AccessFlag;
import org.verbena.verbs.work.SendFlags;

/**
 * What {@code ibv_post_send} and {@code ibv_poll_cq} cost from Java and from C, without a device: the stub library of
 * verbs' tests completes each work request at once. Both sides call the same functions by the same pointers; the
 * difference is Java's.
 *
 * <p>One operation is one signalled SEND of 64 bytes, posted and its completion polled; the batches post 16 with one
 * call and poll them with one.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
@SuppressWarnings({"restricted", "NullAway.Init"}) // calls the C loop; JMH calls open before anything else
public class PostAndPoll {
    private static final int BATCH = 16;
    private static final int C_ROUNDS = 1024;
    private static final int LENGTH_BYTES = 64;

    private final Arena arena = Arena.ofShared();
    private Context context;
    private ProtectionDomain domain;
    private CompletionQueue completions;
    private MemoryRegion region;
    private QueuePair queuePair;
    private SendQueue sends;
    private WorkCompletions one;
    private WorkCompletions batch;
    private MethodHandle cLoop;
    private long queuePairAddress;
    private long completionsAddress;
    private long id;

    /** Opens the stub's device. */
    @Setup
    public void open() {
        String library = System.getProperty("org.verbena.verbs.library");
        if (library == null) {
            throw new IllegalStateException("run bench/verbs, which builds the stub library");
        }
        SymbolLookup stub = SymbolLookup.libraryLookup(Path.of(library), arena);
        cLoop = Linker.nativeLinker()
                .downcallHandle(
                        stub.findOrThrow("stub_loop"),
                        FunctionDescriptor.of(
                                ValueLayout.JAVA_LONG,
                                ValueLayout.JAVA_LONG,
                                ValueLayout.JAVA_LONG,
                                ValueLayout.JAVA_LONG,
                                ValueLayout.JAVA_INT,
                                ValueLayout.JAVA_LONG,
                                ValueLayout.JAVA_INT));
        MethodHandle log = Linker.nativeLinker()
                .downcallHandle(stub.findOrThrow("stub_log"), FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT));
        try {
            log.invokeExact(0);
        } catch (Throwable impossible) {
            throw new IllegalStateException(impossible);
        }
        context = Verbs.device("stub0").open();
        domain = context.allocateProtectionDomain();
        completions = context.createCompletionQueue(2 * BATCH);
        region = domain.registerMemory(arena.allocate(4096), EnumSet.of(AccessFlag.LOCAL_WRITE));
        queuePair = domain.createQueuePair(
                QueuePairOptions.reliable(completions, new QueuePairCapabilities(2 * BATCH, 1, 1, 1, 0)));
        sends = queuePair.sendQueue();
        one = new WorkCompletions(1);
        batch = new WorkCompletions(BATCH);
        queuePairAddress = queuePair.nativeAddress();
        completionsAddress = completions.nativeAddress();
    }

    /** Closes it. */
    @TearDown
    public void close() {
        one.close();
        batch.close();
        queuePair.close();
        region.close();
        completions.close();
        domain.close();
        context.close();
        arena.close();
    }

    /**
     * One by one, from Java.
     *
     * @return the last id
     */
    @Benchmark
    public long javaOneByOne() {
        sends.send(++id, SendFlags.SIGNALED).sge(region, 0, LENGTH_BYTES);
        sends.flush();
        if (completions.poll(one) != 1 || !one.isSuccess(0) || one.workRequestId(0) != id) {
            throw new IllegalStateException("no completion");
        }
        return id;
    }

    /**
     * In batches, from Java.
     *
     * @return the last id
     */
    @Benchmark
    @OperationsPerInvocation(BATCH)
    public long javaBatches() {
        for (int i = 0; i < BATCH; i++) {
            sends.send(++id, SendFlags.SIGNALED).sge(region, 0, LENGTH_BYTES);
        }
        sends.flush();
        int count = completions.poll(batch);
        for (int i = 0; i < count; i++) {
            if (!batch.isSuccess(i)) {
                throw new IllegalStateException(batch.describe(i));
            }
        }
        if (count != BATCH || batch.workRequestId(BATCH - 1) != id) {
            throw new IllegalStateException("no completion");
        }
        return id;
    }

    /**
     * One by one, from C.
     *
     * @return how many
     */
    @Benchmark
    @OperationsPerInvocation(C_ROUNDS)
    public long cOneByOne() {
        return loopInC(1);
    }

    /**
     * In batches, from C.
     *
     * @return how many
     */
    @Benchmark
    @OperationsPerInvocation(C_ROUNDS)
    public long cBatches() {
        return loopInC(BATCH);
    }

    private long loopInC(int batchSize) {
        try {
            long done = (long) cLoop.invokeExact(
                    queuePairAddress,
                    completionsAddress,
                    region.address(),
                    region.localKey(),
                    (long) C_ROUNDS,
                    batchSize);
            if (done != C_ROUNDS) {
                throw new IllegalStateException("the loop in C did " + done);
            }
            return done;
        } catch (RuntimeException | Error thrown) {
            throw thrown;
        } catch (Throwable impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /**
     * Runs all with the allocation profiler, and prints the overview.
     *
     * @param arguments JMH's own, such as {@code -f 1 -wi 2 -i 2} for a quick look
     * @throws RunnerException a benchmark failed
     * @throws CommandLineOptionException an argument is none of JMH's
     */
    public static void main(String[] arguments) throws RunnerException, CommandLineOptionException {
        Path source = Path.of(System.getProperty("stub.source"));
        new Runner(new OptionsBuilder()
                        .parent(new CommandLineOptions(arguments))
                        .include(PostAndPoll.class.getName())
                        .addProfiler(GCProfiler.class)
                        .shouldFailOnError(true)
                        .jvmArgsAppend(
                                "--enable-native-access=ALL-UNNAMED",
                                "-Dorg.verbena.verbs.library=" + CLibrary.compile(source))
                        .build())
                .run();
    }
}
