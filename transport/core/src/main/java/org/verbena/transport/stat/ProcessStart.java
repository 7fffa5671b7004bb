package org.verbena.transport.stat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * When a process began, which distinguishes it from a later one with the same number.
 *
 * @param ticks since the machine started, which no change of the clock moves; 0 where the system does not say
 * @param millis since 1970; 0 where the system does not say
 */
record ProcessStart(long ticks, long millis) {
    /** The clock may be set between two reads. */
    private static final long TOLERANCE_MILLIS = 2_000;

    /** Which word of /proc/PID/stat, after the command in parentheses: the 22nd of all, and the third. */
    private static final int TICKS_WORD = 22 - 3;

    static ProcessStart of(long pid) {
        String[] words = stat(pid);
        long ticks = 0;
        if (words != null && words.length > TICKS_WORD) {
            try {
                ticks = Long.parseLong(words[TICKS_WORD]);
            } catch (NumberFormatException unknown) {
                ticks = 0;
            }
        }
        long millis = ProcessHandle.of(pid)
                .flatMap(process -> process.info().startInstant())
                .map(Instant::toEpochMilli)
                .orElse(0L);
        return new ProcessStart(ticks, millis);
    }

    /** Whether this process is there. If the system does not say when it began, only its number is compared. */
    boolean isAlive(long pid) {
        if (ProcessHandle.of(pid).filter(ProcessHandle::isAlive).isEmpty()) {
            return false;
        }
        ProcessStart now = of(pid);
        if (ticks != 0 && now.ticks != 0) {
            return ticks == now.ticks;
        }
        return millis == 0 || now.millis == 0 || Math.abs(millis - now.millis) <= TOLERANCE_MILLIS;
    }

    /** Whether it is stopped, by SIGSTOP or a debugger; false where the system does not say. */
    static boolean isStopped(long pid) {
        String[] words = stat(pid);
        return words != null && words.length > 0 && (words[0].equals("T") || words[0].equals("t"));
    }

    /** The words of /proc/PID/stat after the command, which may have spaces in it. Source: proc_pid_stat(5). */
    private static String @Nullable [] stat(long pid) {
        try {
            String line = Files.readString(Path.of("/proc", Long.toString(pid), "stat"), StandardCharsets.ISO_8859_1);
            return line.substring(line.lastIndexOf(')') + 1).strip().split(" ");
        } catch (IOException notLinux) {
            return null;
        }
    }
}
