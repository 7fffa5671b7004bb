package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.ffm.ErrnoException;
import org.verbena.transport.shm.ffm.ProcessFiles;

/**
 * A peer may announce a file of any file system, and some of these wait for a process of the peer when one is opened.
 */
class FilesOnDisksTest {
    @Test
    void aFileOfAFileSystemIsRefusedBeforeItIsOpened(@TempDir Path directory) throws IOException {
        Path path = directory.resolve("file");
        try (FileChannel file = FileChannel.open(
                        path, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
                ProcessFiles files = ProcessFiles.of(ShmContext.PID)) {
            assertThat(file.position(4095).write(java.nio.ByteBuffer.allocate(1)))
                    .isOne();
            int descriptor = descriptor(path);
            assertThat(catchThrowable(() -> files.open(descriptor, 4096, false)))
                    .isInstanceOf(IOException.class)
                    .as("it is refused for what it is, not by the kernel for what was asked of it once it was open")
                    .isNotInstanceOf(ErrnoException.class);
        }
    }

    /** Java does not say it. */
    private static int descriptor(Path of) throws IOException {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            return open.filter(each -> isLinkTo(each, of.toAbsolutePath()))
                    .mapToInt(each -> Integer.parseInt(each.getFileName().toString()))
                    .findFirst()
                    .orElseThrow();
        }
    }

    private static boolean isLinkTo(Path link, Path target) {
        try {
            return Files.readSymbolicLink(link).equals(target);
        } catch (IOException closed) {
            return false;
        }
    }
}
