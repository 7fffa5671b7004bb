package org.verbena.bench.stack;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.EnumSet;
import org.verbena.verbs.CompletionQueue;
import org.verbena.verbs.Context;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.ProtectionDomain;
import org.verbena.verbs.QueuePair;
import org.verbena.verbs.QueuePairCapabilities;
import org.verbena.verbs.QueuePairOptions;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.memory.AccessFlag;

/** Two queue pairs of the linked stub's device, and their memory: a slot for each message that either end has. */
@SuppressWarnings({"restricted", "NullAway.Init"}) // calls into the stub; opened before anything else
abstract class NativeQueues implements Layer {
    /** Slots of an end. */
    static final int SLOTS = 256;

    private static final Linker LINKER = Linker.nativeLinker();
    private static final FunctionDescriptor PAIR =
            FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);
    private static final FunctionDescriptor START = FunctionDescriptor.of(
            ValueLayout.JAVA_INT,
            ValueLayout.JAVA_LONG,
            ValueLayout.JAVA_LONG,
            ValueLayout.JAVA_LONG,
            ValueLayout.JAVA_INT,
            ValueLayout.JAVA_INT);
    private static final FunctionDescriptor ECHO =
            FunctionDescriptor.of(ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG);

    private final Arena arena = Arena.ofShared();
    private ProtectionDomain domain;
    CompletionQueue completions;
    MemoryRegion region;

    @Override
    public void open() {
        Context context = Verbs.device("stub0").open();
        domain = context.allocateProtectionDomain();
        completions = context.createCompletionQueue(4 * SLOTS);
        region = domain.registerMemory(
                arena.allocate(2L * SLOTS * MESSAGE_BYTES, 64), EnumSet.of(AccessFlag.LOCAL_WRITE));
    }

    @Override
    public void start(Series series) {
        try (QueuePair one = newQueuePair();
                QueuePair other = newQueuePair()) {
            series.begin();
            series.finish(echo(one, other, series));
        } catch (Throwable thrown) {
            series.fail(thrown);
        }
    }

    private QueuePair newQueuePair() {
        return domain.createQueuePair(
                QueuePairOptions.reliable(completions, new QueuePairCapabilities(SLOTS, SLOTS, 1, 1, 0)));
    }

    /** Echoes until the time is up; returns how many messages arrived at either end. */
    abstract long echo(QueuePair one, QueuePair other, Series series) throws Throwable;

    final MethodHandle function(String name, FunctionDescriptor type) {
        SymbolLookup library =
                SymbolLookup.libraryLookup(Path.of(System.getProperty("org.verbena.verbs.library")), arena);
        return LINKER.downcallHandle(library.findOrThrow(name), type);
    }

    final void pair(QueuePair one, QueuePair other) throws Throwable {
        function("linked_pair", PAIR).invokeExact(one.nativeAddress(), other.nativeAddress());
    }

    /** The loop in C. */
    static final class InC extends NativeQueues {
        private static final long ECHOES = 100_000;

        @Override
        long echo(QueuePair one, QueuePair other, Series series) throws Throwable {
            int refused = (int) function("linked_start", START)
                    .invokeExact(
                            one.nativeAddress(),
                            other.nativeAddress(),
                            region.address(),
                            region.localKey(),
                            series.window);
            if (refused != 0) {
                throw new IllegalStateException("linked_start failed");
            }
            MethodHandle echo = function("linked_echo", ECHO);
            long queue = completions.nativeAddress();
            long arrived = 0;
            do {
                long more = (long) echo.invokeExact(queue, ECHOES);
                if (more < 2 * ECHOES) {
                    throw new IllegalStateException("linked_echo returned " + more);
                }
                arrived += more;
            } while (!series.isTimeUp());
            return arrived;
        }
    }
}
