package org.verbena.transport.stat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.transport.spi.ChildJvm;

/** Whose directory it is, who may read it, and what is left in it. */
@Timeout(240)
class StatDirectoryTest {
    private static final long PID = ProcessHandle.current().pid();
    private static final int NOBODY = 65_534;

    @TempDir
    private Path folder;

    private StatDirectory prepared() throws IOException {
        StatDirectory directory = StatDirectory.ownAt(folder.resolve("verbena"));
        directory.prepare();
        return directory;
    }

    private static String permissions(Path path) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
    }

    @Test
    void isForItsUserAlone() throws IOException {
        StatDirectory directory = prepared();
        StatFile.create(directory, 1);
        assertThat(permissions(directory.path())).isEqualTo("rwx------");
        assertThat(permissions(directory.fileOf(PID))).isEqualTo("rw-------");
        Files.setPosixFilePermissions(directory.path(), PosixFilePermissions.fromString("rwxrwxrwx"));
        directory.prepare();
        assertThat(permissions(directory.path())).isEqualTo("rwx------");
    }

    @Test
    void isInTheRuntimeDirectoryOrTheTemporaryOne() throws IOException {
        String temporary = folder.resolve("tmp").toString();
        assertThat(StatDirectory.ofUser(folder.toString(), temporary).path()).isEqualTo(folder.resolve("verbena"));
        Path own = StatDirectory.ofUser(null, temporary).path();
        assertThat(own.getParent()).isEqualTo(Path.of(temporary));
        assertThat(own.getFileName().toString()).isEqualTo("verbena-" + Files.getAttribute(folder, "unix:uid"));
        assertThat(StatDirectory.ofUser("", temporary).path()).isEqualTo(own);
        assertThat(StatDirectory.ofUser("relative", temporary).path()).isEqualTo(own);
        assertThat(StatDirectory.ofUser(folder + "/none", temporary).path()).isEqualTo(own);
        assertThat(StatDirectory.ofUser(ofAnother(folder.resolve("other")).toString(), temporary)
                        .path())
                .isEqualTo(own);
    }

    /** A directory of another user: only root can make one. */
    private static Path ofAnother(Path path) throws IOException {
        Object user = Files.getAttribute(path.getParent(), "unix:uid");
        assumeThat(user).as("only root can make a directory of another user").isEqualTo(0);
        Files.createDirectories(path);
        Files.setAttribute(path, "unix:uid", NOBODY);
        return path;
    }

    @Test
    void refusesWhatAnotherUserMayHaveMade() throws IOException {
        Path real = Files.createDirectory(folder.resolve("real"));
        StatDirectory link = StatDirectory.ownAt(Files.createSymbolicLink(folder.resolve("link"), real));
        assertThatExceptionOfType(IOException.class).isThrownBy(link::prepare).withMessageContaining("symbolic link");
        assertThatExceptionOfType(IOException.class).isThrownBy(link::pids).withMessageContaining("symbolic link");
        StatDirectory file = StatDirectory.ownAt(Files.createFile(folder.resolve("file")));
        assertThatExceptionOfType(IOException.class).isThrownBy(file::prepare).withMessageContaining("not a directory");
        StatDirectory other = StatDirectory.ownAt(ofAnother(folder.resolve("other")));
        assertThatExceptionOfType(IOException.class).isThrownBy(other::prepare).withMessageContaining("belongs to");
        assertThatExceptionOfType(IOException.class).isThrownBy(other::sweep).withMessageContaining("belongs to");
    }

    @Test
    void aDirectoryThatIsNotThereHasNoProcesses() throws IOException {
        StatDirectory none = StatDirectory.ownAt(folder.resolve("none"));
        assertThat(none.pids()).isEmpty();
        assertThat(none.sweep()).isZero();
    }

    @Test
    void removesTheFilesOfProcessesThatHaveEnded() throws Exception {
        StatDirectory directory = prepared();
        StatFile.create(directory, 1);
        Process ended = new ProcessBuilder("true").start();
        ended.waitFor();
        Files.copy(directory.fileOf(PID), directory.fileOf(ended.pid()));
        Files.writeString(directory.path().resolve("note"), "not a process's");
        Files.createDirectory(directory.path().resolve("7"));
        assertThat(directory.pids()).containsExactlyInAnyOrder(PID, ended.pid());
        assertThat(StatDirectory.at(directory.path()).sweep())
                .as("what is only read")
                .isZero();
        assertThat(directory.sweep()).isEqualTo(1);
        assertThat(directory.pids()).containsExactly(PID);
        assertThat(directory.path().resolve("note")).exists();
    }

    @Test
    void tellsAProcessFromAnEarlierOneOfItsNumber() throws IOException {
        StatDirectory directory = prepared();
        StatFile.create(directory, 1);
        Path file = directory.fileOf(PID);
        byte[] bytes = Files.readAllBytes(file);
        ByteBuffer numbers = ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder());
        int ticks = (int) StatLayout.START_TICKS;
        assumeThat(numbers.getLong(ticks))
                .as("this system does not say when a process began")
                .isPositive();
        numbers.putLong(ticks, numbers.getLong(ticks) - 1);
        Files.delete(file); // which this process has locked
        Files.write(file, bytes);
        assertThat(directory.sweep()).isEqualTo(1);
        assertThat(file).doesNotExist();
    }

    @Test
    void keepsAFileThatItCannotReadWhileTheProcessIsThere() throws IOException {
        StatDirectory directory = prepared();
        Files.writeString(directory.fileOf(PID), "just begun");
        assertThat(directory.sweep()).isZero();
        StatFile.create(directory, 1); // and takes the place of what an earlier process left
        assertThat(StatReader.read(directory.fileOf(PID)).pid()).isEqualTo(PID);
    }

    /** A process of another PID namespace: its number is not that of any process here. */
    static final class Elsewhere {
        private Elsewhere() {}

        public static void main(String... arguments) throws IOException {
            try (FileChannel channel = FileChannel.open(Path.of(arguments[0]), StandardOpenOption.WRITE)) {
                System.out.println(channel.tryLock() == null ? "not locked" : "locked");
                int end = System.in.read();
                System.out.println(end);
            }
        }
    }

    @Test
    void theFileOfAProcessOfAnotherNamespaceStaysAsLongAsItIsLocked() throws Exception {
        StatDirectory directory = prepared();
        long nobody = 4_194_305; // beyond the largest number of a process
        Files.writeString(directory.fileOf(nobody), "written elsewhere");
        Files.writeString(directory.fileOf(PID), "that one has this process's number");
        Process other = start(directory.fileOf(nobody));
        Process namesake = start(directory.fileOf(PID));
        try {
            assertThat(directory.sweep()).isZero();
            StatFile.create(directory, 1).copy();
            assertThat(directory.pids()).containsExactly(PID, nobody, PID + StatDirectory.BEYOND_PIDS);
        } finally {
            for (Process each : List.of(other, namesake)) {
                each.getOutputStream().close();
                each.waitFor();
            }
        }
        assertThat(directory.sweep()).isPositive();
        assertThat(directory.pids()).doesNotContain(nobody);
    }

    private static Process start(Path file) throws IOException {
        Process started = new ProcessBuilder(ChildJvm.command(List.of(), Elsewhere.class, file.toString()))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        assertThat(started.inputReader().readLine()).isEqualTo("locked");
        return started;
    }
}
