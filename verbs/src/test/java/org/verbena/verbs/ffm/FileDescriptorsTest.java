package org.verbena.verbs.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class FileDescriptorsTest {
    private static final int NEVER_OPEN = 1 << 30;
    private static final short POLLNVAL = 0x20;

    @TempDir
    Path folder;

    @Test
    void filesAreOpenedPolledAndClosed() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment path = arena.allocateFrom(folder.resolve("made").toString());
            int fd = FileDescriptors.openOrCreate(errno, path, 0600);
            assertThat(fd).isNotNegative();
            assertThat(folder.resolve("made")).isEmptyFile();
            MemorySegment pollfds = FileDescriptors.newPollfds(arena, -1, fd);
            assertThat(FileDescriptors.poll(errno, pollfds, -1)).isOne();
            assertThat(FileDescriptors.isReady(pollfds, 0)).isFalse();
            assertThat(FileDescriptors.isReady(pollfds, 1)).isTrue();
            assertThat(FileDescriptors.setBlocking(errno, fd, false)).isZero();
            assertThat(FileDescriptors.setBlocking(errno, fd, true)).isZero();
            FileDescriptors.close(fd);
            assertThat(FileDescriptors.setBlocking(errno, fd, true)).isEqualTo(-Errno.EBADF);
        }
    }

    @Test
    void failuresAreNegativeErrnos() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = Errno.newCapture(arena);
            MemorySegment path =
                    arena.allocateFrom(folder.resolve("missing/made").toString());
            assertThat(FileDescriptors.openOrCreate(errno, path, 0600)).isEqualTo(-Errno.ENOENT);
            assertThat(FileDescriptors.setBlocking(errno, NEVER_OPEN, false)).isEqualTo(-Errno.EBADF);
            assertThat(FileDescriptors.poll(errno, FileDescriptors.newPollfds(arena, -1), 0))
                    .isZero();
            MemorySegment broken = FileDescriptors.newPollfds(arena, NEVER_OPEN);
            assertThat(FileDescriptors.poll(errno, broken, -1)).isOne();
            assertThat(broken.get(CStruct.U16, 6)).isEqualTo(POLLNVAL);
        }
    }
}
