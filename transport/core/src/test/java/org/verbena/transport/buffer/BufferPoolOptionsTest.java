package org.verbena.transport.buffer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.verbena.transport.MemoryDomain.Access;
import org.verbena.transport.ffm.MappedMemory;

/** Options at their bounds. */
class BufferPoolOptionsTest {
    private static final BufferPoolOptions DEFAULTS = BufferPoolOptions.DEFAULTS;

    @Test
    void rejectsWhatIsOutOfRangeByName() {
        rejects("maxRegisteredBytes", () -> DEFAULTS.withMaxRegisteredBytes(4095));
        rejects("chunkBytes", () -> DEFAULTS.withChunkBytes((256 << 10) - 1));
        rejects("chunkBytes", () -> DEFAULTS.withChunkBytes(128 << 10));
        rejects("chunkBytes", () -> DEFAULTS.withChunkBytes(3 << 20));
        rejects("largestPooledBytes", () -> DEFAULTS.withLargestPooledBytes(-1));
        rejects("loopCacheBytesPerClass", () -> DEFAULTS.withLoopCacheBytesPerClass(-1));
        rejects("idleNanos", () -> DEFAULTS.withIdleNanos(-1));
        rejects("hugePages", () -> DEFAULTS.withChunkBytes(1 << 20).withHugePages(true));
        assertThat(DEFAULTS.withMaxRegisteredBytes(4096).maxRegisteredBytes()).isEqualTo(4096);
        assertThat(DEFAULTS.withChunkBytes(1 << 30).chunkBytes()).isEqualTo(1 << 30);
        assertThat(DEFAULTS.withAccess(EnumSet.of(Access.REMOTE_READ)).access()).containsExactly(Access.REMOTE_READ);
    }

    private static void rejects(String option, ThrowingCallable change) {
        assertThatThrownBy(change).isInstanceOf(IllegalArgumentException.class).hasMessageContaining(option);
    }

    @Test
    void takesSystemProperties() {
        assertThat(BufferPoolOptions.ofSystemProperties()).isEqualTo(DEFAULTS);
        withProperty(
                "maxRegisteredBytes",
                "8589934592",
                () -> assertThat(BufferPoolOptions.ofSystemProperties())
                        .isEqualTo(DEFAULTS.withMaxRegisteredBytes(8L << 30)));
        withProperty(
                "chunkBytes",
                "4194304",
                () -> assertThat(BufferPoolOptions.ofSystemProperties()).isEqualTo(DEFAULTS.withChunkBytes(4 << 20)));
        withProperty(
                "largestPooledBytes",
                "1000",
                () -> assertThat(BufferPoolOptions.ofSystemProperties())
                        .isEqualTo(DEFAULTS.withLargestPooledBytes(1000)));
        withProperty(
                "hugePages",
                "true",
                () -> assertThat(BufferPoolOptions.ofSystemProperties()).isEqualTo(DEFAULTS.withHugePages(true)));
        withProperty("chunkBytes", "2147483648", () -> rejects("chunkBytes", BufferPoolOptions::ofSystemProperties));
        withProperty("chunkBytes", "2m", () -> rejects("chunkBytes", BufferPoolOptions::ofSystemProperties));
        withProperty("hugePages", "yes", () -> rejects("hugePages", BufferPoolOptions::ofSystemProperties));
    }

    private static void withProperty(String name, String value, Runnable check) {
        System.setProperty("org.verbena.buffers." + name, value);
        try {
            check.run();
        } finally {
            System.clearProperty("org.verbena.buffers." + name);
        }
    }

    @Test
    void registersForLocalUseAloneByDefault() {
        assertThat(DEFAULTS.access()).containsExactly(Access.LOCAL_WRITE);
    }

    @Test
    void canLiveWithASingleSlab() {
        CountingMemoryDomain domain = new CountingMemoryDomain();
        RegisteredBufferPool pool =
                new RegisteredBufferPool(domain, DEFAULTS.withMaxRegisteredBytes(Slab.pagesFor(64) * 4096L));
        RegisteredByteBuf buffer = pool.allocate(64);
        assertThat(domain.registeredBytes()).isEqualTo(pool.options().maxRegisteredBytes());
        assertThat(pool.tryAllocate(5_000, 5_000)).isNull();
        buffer.release();
        pool.close();
        assertThat(domain.registeredBytes()).isZero();
    }

    @Test
    void usesHugePagesOrSaysWhyNot() throws IOException {
        CountingMemoryDomain domain = new CountingMemoryDomain();
        BufferPoolOptions options = DEFAULTS.withHugePages(true).withChunkBytes(4 << 20);
        String cause = MappedMemory.hugePagesUnavailabilityCause();
        if (cause != null) {
            assertThatThrownBy(() -> new RegisteredBufferPool(domain, options))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("BufferPoolOptions.hugePages")
                    .hasMessageContaining(cause);
        }
        assumeThat(cause).as("huge pages").isNull();
        RegisteredBufferPool pool = new RegisteredBufferPool(domain, options);
        RegisteredByteBuf buffer = pool.allocate(4 << 20);
        assertThat(buffer.memoryAddress() % MappedMemory.HUGE_PAGE_BYTES).isZero();
        buffer.writeZero(4 << 20);
        assertThat(isAdvised(buffer.memoryAddress())).isTrue();
        long address = buffer.memoryAddress();
        buffer.release();
        pool.close();
        assertThat(domain.liveRegions()).isZero();
        assertThat(isAdvised(address)).isFalse();
    }

    /** Whether the mapping at an address has the flag that madvise(MADV_HUGEPAGE) sets. Source: proc_pid_smaps(5). */
    private static boolean isAdvised(long address) throws IOException {
        boolean inside = false;
        List<String> lines = Files.readAllLines(Path.of("/proc/self/smaps"));
        for (String line : lines) {
            if (line.matches("^[0-9a-f]+-[0-9a-f]+ .*")) {
                String[] range = line.substring(0, line.indexOf(' ')).split("-");
                inside = Long.compareUnsigned(Long.parseUnsignedLong(range[0], 16), address) <= 0
                        && Long.compareUnsigned(address, Long.parseUnsignedLong(range[1], 16)) < 0;
            } else if (inside && line.startsWith("VmFlags:")) {
                return line.contains(" hg");
            }
        }
        return false;
    }
}
