package org.verbena.tools.stat;

import java.io.Console;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.Json;
import org.verbena.samples.command.ServerSignals;
import org.verbena.transport.stat.ProcessReading;
import org.verbena.transport.stat.StatDirectory;
import org.verbena.transport.stat.StatException;
import org.verbena.transport.stat.StatFile;
import org.verbena.transport.stat.StatReader;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;

/**
 * Shows the processes of this user that use Verbena, and what one of them does, from the file of counters that it
 * writes.
 */
@Command(
        name = "stat",
        description = "Shows processes that use Verbena, and what their connections and loops do.",
        footer = {
            "%nWithout PID it lists your processes, or shows the only one. It reads a file of the process, so it"
                    + " also shows a process that hangs or is stopped.",
            "%nA server that listens with several providers, and a client with a ladder, has a line for each provider that"
                    + " it uses, and says why its connections have theirs.",
            "%nA loop HANGS if it has something to do and has not polled for --hangs-after: a handler blocks it, or the"
                    + " process gets no processor. jstack PID shows where it is."
        })
public final class Stat implements Callable<Integer> {
    private static final double MIN_SECONDS = 0.1;
    private static final double MAX_SECONDS = 3600;

    /** Clears the terminal and begins at its top. */
    private static final String CLEAR = "\u001b[H\u001b[2J";

    @Parameters(index = "0", arity = "0..1", paramLabel = "PID", description = "The process to show.")
    private @Nullable Long pid;

    @Option(
            names = "--interval",
            paramLabel = "SECONDS",
            defaultValue = "1",
            description = "The time between the two readings that rates are from (${DEFAULT-VALUE}).")
    private double intervalSeconds;

    @Option(names = "--watch", description = "Go on until interrupted, or until the process ends.")
    private boolean watch;

    @Option(names = "--count", paramLabel = "N", description = "With --watch: end after so many.")
    private @Nullable Integer count;

    @Option(
            names = "--hangs-after",
            paramLabel = "SECONDS",
            defaultValue = "2",
            description = "How long a turn of a loop may take (${DEFAULT-VALUE}).")
    private double hangSeconds;

    @Option(
            names = "--directory",
            paramLabel = "DIR",
            description = "Read the files there: of another user, as root, or of a container.")
    private @Nullable Path folder;

    @Option(names = "--json", description = "Print as JSON; with --watch, an object for each reading.")
    private boolean json;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws IOException, InterruptedException {
        check();
        if (watch) {
            ServerSignals.endWithZero();
        }
        StatDirectory directory = folder == null ? StatDirectory.ofUser() : StatDirectory.at(folder);
        directory.sweep();
        Long chosen = pid;
        if (chosen == null) {
            List<ProcessReading> all = readAll(directory);
            if (all.size() != 1) {
                list(directory, all);
                return CommandLine.ExitCode.OK;
            }
            chosen = all.getFirst().pid();
        }
        show(directory, chosen);
        return CommandLine.ExitCode.OK;
    }

    private void check() {
        if (!(intervalSeconds >= MIN_SECONDS && intervalSeconds <= MAX_SECONDS)) {
            throw wrong("--interval must be " + MIN_SECONDS + " to " + MAX_SECONDS + ", not " + intervalSeconds);
        }
        if (!(hangSeconds > 0)) {
            throw wrong("--hangs-after must be above 0, not " + hangSeconds);
        }
        if (count != null && (count < 1 || !watch)) {
            throw wrong(watch ? "--count must be 1 or more, not " + count : "--count needs --watch");
        }
        if (pid != null && pid < 1) {
            throw wrong("PID must be 1 or more, not " + pid);
        }
    }

    private ParameterException wrong(String what) {
        return new ParameterException(spec.commandLine(), what);
    }

    /** Reads those that it can, and reports why it cannot read the others. */
    private List<ProcessReading> readAll(StatDirectory directory) throws IOException {
        List<ProcessReading> all = new ArrayList<>();
        for (long each : directory.pids()) {
            try {
                all.add(StatReader.read(directory.fileOf(each)));
            } catch (NoSuchFileException ended) {
                // It has ended since the directory was read.
            } catch (IOException unreadable) {
                spec.commandLine().getErr().println("stat: " + describe(unreadable));
            }
        }
        return all;
    }

    private static String describe(IOException unreadable) {
        if (unreadable instanceof AccessDeniedException) {
            return unreadable.getMessage()
                    + " cannot be read: it belongs to another user; run this as that user or root";
        }
        return String.valueOf(unreadable.getMessage());
    }

    private void list(StatDirectory directory, List<ProcessReading> first) throws IOException, InterruptedException {
        List<ProcessReading> processes = first;
        for (int i = 1; ; i++) {
            if (processes.isEmpty() && !json) {
                throw new CommandFailure("no process of yours uses Verbena: " + directory.path()
                        + " has none. A process is there from its first event loop on, unless it runs with -D"
                        + StatFile.PROPERTY + "=false, as another user, or with another XDG_RUNTIME_DIR or"
                        + " java.io.tmpdir (see --directory)");
            }
            print(
                    json
                            ? Json.of(Map.of(
                                    "processes",
                                    processes.stream().map(Stat::summary).toList()))
                            : Page.list(processes, System.currentTimeMillis()));
            if (!goesOn(i)) {
                return;
            }
            sleep();
            directory.sweep();
            processes = readAll(directory);
        }
    }

    private static Map<String, Object> summary(ProcessReading process) {
        Map<String, Object> summary = new java.util.LinkedHashMap<>();
        summary.put("pid", process.pid());
        summary.put("command", process.command());
        summary.put("javaVersion", process.javaVersion());
        summary.put("stopped", process.stopped());
        summary.put("startedMillis", process.startedMillis());
        summary.put("openConnections", process.openConnections());
        summary.put("providers", process.providers());
        return summary;
    }

    private void show(StatDirectory directory, long which) throws IOException, InterruptedException {
        ProcessReading earlier = read(directory, which);
        if (earlier == null) {
            throw new CommandFailure(whyNone(directory, which));
        }
        for (int i = 1; ; i++) {
            sleep();
            ProcessReading now = read(directory, which);
            if (now == null && i == 1) {
                throw new CommandFailure("process " + which + " has ended");
            }
            if (now == null) {
                spec.commandLine().getErr().println("stat: process " + which + " has ended");
                return;
            }
            Figures figures = Figures.of(earlier, now, nanos(hangSeconds));
            print(json ? Json.of(Map.of("processes", List.of(figures))) : Page.of(figures, System.currentTimeMillis()));
            if (!goesOn(i)) {
                return;
            }
            earlier = now;
        }
    }

    private boolean goesOn(int readings) {
        return watch && (count == null || readings < count);
    }

    private void sleep() throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(nanos(intervalSeconds));
    }

    private static long nanos(double seconds) {
        return (long) (seconds * TimeUnit.SECONDS.toNanos(1));
    }

    /** Reads a process's file. Returns null if there is none, or the process has ended. */
    private @Nullable ProcessReading read(StatDirectory directory, long which) throws IOException {
        try {
            ProcessReading reading = StatReader.read(directory.fileOf(which));
            // A container's process numbers are not those of this machine.
            return folder != null || reading.alive() ? reading : null;
        } catch (NoSuchFileException none) {
            return null;
        } catch (StatException unreadable) {
            throw unreadable;
        } catch (IOException unreadable) {
            throw new CommandFailure(describe(unreadable), unreadable);
        }
    }

    /** Why a process has no file, and what to do. */
    private static String whyNone(StatDirectory directory, long which) {
        ProcessHandle process = ProcessHandle.of(which).orElse(null);
        if (process == null) {
            return "there is no process " + which + "; stat without a number lists those that use Verbena";
        }
        String owner = process.info().user().orElse("");
        if (!owner.isEmpty() && !owner.equals(System.getProperty("user.name"))) {
            return "process " + which + " belongs to " + owner + ": run this as " + owner
                    + ", or as root with --directory";
        }
        if (isSwitchedOff(which)) {
            return "process " + which + " runs with -D" + StatFile.PROPERTY
                    + "=false: start it without that to see it here";
        }
        return "process " + which + " has no file in " + directory.path()
                + ": it has had no event loop of Verbena, or runs with another XDG_RUNTIME_DIR or java.io.tmpdir"
                + " (see --directory), or its log says why it could not make one";
    }

    private static boolean isSwitchedOff(long which) {
        try {
            String line =
                    Files.readString(Path.of("/proc", Long.toString(which), "cmdline"), StandardCharsets.ISO_8859_1);
            return Arrays.asList(line.split("\0")).contains("-D" + StatFile.PROPERTY + "=false");
        } catch (IOException notLinux) {
            return false;
        }
    }

    @SuppressWarnings("SystemConsoleNull") // since JDK 25 it may be null again without a terminal
    private void print(String page) {
        PrintWriter out = spec.commandLine().getOut();
        Console console = System.console();
        if (watch && !json && console != null && console.isTerminal()) {
            out.print(CLEAR);
        }
        out.print(page);
        if (watch && !json) {
            out.println();
        }
        out.flush();
    }
}
