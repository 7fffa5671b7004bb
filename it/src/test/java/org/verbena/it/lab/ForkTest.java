package org.verbena.it.lab;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.spi.Patience;
import org.verbena.verbs.Verbs;
import org.verbena.verbs.memory.ForkStatus;
import org.verbena.verbs.queue.QueuePairType;
import org.verbena.verbs.work.CompletionStatus;
import org.verbena.verbs.work.SendFlags;

/**
 * Registered memory of a process that forks while its child lives on. fork(2) lets both use the same pages until one of
 * them writes: the writer then gets a copy, and a device would go on with the original. Linux 5.12 and newer copy
 * pinned pages for the child at once, so that this process keeps the originals.
 */
@Tag("lab")
@Timeout(180)
class ForkTest {
    private static final int PAGE_BYTES = 4096;

    @Test
    @SuppressWarnings("restricted") // loads and calls a library
    void theDeviceWritesIntoMemoryOfAProcessThatHasForked(@TempDir Path folder) throws Throwable {
        Path source = folder.resolve("fork_child.c");
        try (InputStream text = ForkTest.class.getResourceAsStream("fork_child.c")) {
            Files.copy(text, source);
        }
        Path library = folder.resolve("libfork_child.so");
        PeerProgram.run(Patience.LIMIT, "gcc", "-shared", "-fPIC", source.toString(), "-o", library.toString());
        assertThat(Verbs.forkStatus()).isEqualTo(ForkStatus.UNNEEDED);
        try (Arena arena = Arena.ofShared();
                QueuePairLoop loop = new QueuePairLoop(LabDevice.RXE, QueuePairType.RC)) {
            loop.connect(loop.left, loop.right);
            SymbolLookup symbols = SymbolLookup.libraryLookup(library, arena);
            Linker linker = Linker.nativeLinker();
            MethodHandle fork = linker.downcallHandle(
                    symbols.findOrThrow("fork_child"), FunctionDescriptor.of(ValueLayout.JAVA_INT));
            MethodHandle end = linker.downcallHandle(
                    symbols.findOrThrow("end_child"), FunctionDescriptor.ofVoid(ValueLayout.JAVA_INT));
            MemorySegment from = loop.left.memory();
            MemorySegment to = loop.right.memory();
            from.fill((byte) 1);
            to.fill((byte) 2);
            int child = (int) fork.invokeExact();
            assertThat(child).isPositive();
            try {
                for (long page = 0; page < to.byteSize(); page += PAGE_BYTES) {
                    to.set(ValueLayout.JAVA_BYTE, page, (byte) 3);
                    from.set(ValueLayout.JAVA_BYTE, page, (byte) 4);
                }
                loop.left
                        .queuePair
                        .sendQueue()
                        .write(7, SendFlags.SIGNALED, loop.right.region.address(), loop.right.region.remoteKey())
                        .sge(loop.left.region, 0, QueuePairLoop.REGION_BYTES)
                        .flush();
                assertThat(loop.left.next().status()).isEqualTo(CompletionStatus.SUCCESS);
                assertThat(to.mismatch(from)).isEqualTo(-1);
                assertThat(to.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 4);
            } finally {
                end.invokeExact(child);
            }
        }
    }
}
