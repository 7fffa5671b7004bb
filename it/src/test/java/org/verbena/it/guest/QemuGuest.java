package org.verbena.it.guest;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The guest under QEMU, by the scripts in {@code it/lab}. */
final class QemuGuest implements Guest {
    /**
     * The flags of a JVM in the guest, where compiling is dear and runs are short. It takes its archive of classes
     * where that lies: moving it would rewrite its pages.
     */
    static final List<String> GUEST_JVM_FLAGS = List.of(
            "-Xmx1g",
            "-XX:+UseSerialGC",
            System.getProperty("lab.compilers", "-XX:TieredStopAtLevel=1"),
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:ArchiveRelocationMode=0",
            "-XX:-UsePerfData");

    /**
     * And of one that runs a single program: it compiles only what is called ten times as often as elsewhere, and
     * starts a quarter faster.
     */
    static final String PROGRAM_FLAG = "-XX:CompileThresholdScaling=10";

    /** The file in the exchange folder that says what each class took: {@code .ci/times}. */
    private static final String TIMES = "times";

    private static final int CONSOLE_TAIL_LINES = 60;

    private static final int PATIENCE_SECONDS = 120;

    /** Virtual CPUs of a guest that has the machine for itself. */
    private static final int CPUS_ALONE = 2;

    /** Of one that runs beside others. */
    private static final int CPUS_BESIDE_OTHERS = Integer.getInteger("lab.cpus", 1);

    /** Properties of the host's JVM that are the tests' in the guest too. */
    private static final List<String> FORWARDED_PREFIXES = List.of("lab.", "org.verbena.", "verbena.", "io.netty.");

    private final Path labFolder;
    private final List<String> jvmFlags;
    private final int timeLimitSeconds;
    private final @Nullable Path classesFolder;
    private GuestClasses classes = GuestClasses.asTheyAre();

    /**
     * @param labFolder {@code it/lab}
     * @param jvmFlags the flags that every JVM of the project is started with
     * @param timeLimitSeconds after which the guest is ended
     * @param classesFolder where to make the {@link GuestClasses}; null if the few tests to run do not pay for that
     */
    QemuGuest(Path labFolder, List<String> jvmFlags, int timeLimitSeconds, @Nullable Path classesFolder) {
        this.labFolder = labFolder;
        this.jvmFlags = List.copyOf(jvmFlags);
        this.timeLimitSeconds = timeLimitSeconds;
        this.classesFolder = classesFolder;
    }

    /** Flags and class path of a JVM in the guest. */
    List<String> javaArguments() {
        List<String> arguments = flags();
        arguments.addAll(classes.cache());
        arguments.addAll(List.of("-cp", classes.classPath()));
        return arguments;
    }

    private List<String> flags() {
        List<String> flags = new ArrayList<>(jvmFlags);
        flags.addAll(GUEST_JVM_FLAGS);
        return flags;
    }

    @Override
    public void prepare() throws UnavailableException {
        try {
            build();
            if (classesFolder != null) {
                classes = GuestClasses.prepare(classesFolder, flags());
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new UnavailableException("interrupted while the guest's classes were prepared");
        }
    }

    @Override
    public Run start(Path exchange, boolean isAlone) {
        try {
            writeJavaArguments(exchange);
            Path console =
                    exchange.resolveSibling(exchange.getFileName().toString().replace("exchange", "console") + ".log");
            ProcessBuilder boot = new ProcessBuilder(
                            labFolder.resolve("boot").toString(),
                            labFolder.resolve("jobs/with-devices").toString(),
                            Path.of(System.getProperty("java.home"), "bin", "java")
                                    .toString(),
                            "@/lab-exchange/java.args")
                    .redirectErrorStream(true)
                    .redirectOutput(console.toFile());
            boot.environment()
                    .putAll(Map.of(
                            "LAB_EXCHANGE", exchange.toString(), "LAB_TIMEOUT", Integer.toString(timeLimitSeconds)));
            boot.environment().put("LAB_CPUS", Integer.toString(isAlone ? CPUS_ALONE : CPUS_BESIDE_OTHERS));
            // A pipe of this JVM: however that ends, the guest does not outlive it.
            boot.environment().put("LAB_ENDS_WITH_INPUT", "yes");
            return new QemuRun(boot.start(), console, timeLimitSeconds);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Builds the guest unless it is there. */
    void build() throws IOException, UnavailableException {
        Process build = new ProcessBuilder(labFolder.resolve("build-guest").toString())
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start();
        // The last line is the reason if it fails; whoever is told prints it.
        String last = "";
        try (var lines = build.errorReader(StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (!last.isEmpty()) {
                    System.out.println(last);
                }
                last = line;
            }
        }
        try {
            if (build.waitFor() != 0) {
                throw new UnavailableException(
                        last.isEmpty() ? "it/lab/build-guest failed without a word" : last.replaceFirst("^lab: ", ""));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new UnavailableException("interrupted while the guest was built");
        }
    }

    private void writeJavaArguments(Path exchange) throws IOException {
        List<String> arguments = javaArguments();
        arguments.add("-XX:ErrorFile=/lab-exchange/hs_err.log");
        // A test that waits fails later in the guest than on a host, and never because the guest is slow.
        arguments.add("-Dverbena.test.patienceSeconds=" + PATIENCE_SECONDS);
        arguments.add("-Dverbena.test.programFlag=" + PROGRAM_FLAG);
        System.getProperties().stringPropertyNames().stream()
                .filter(name -> FORWARDED_PREFIXES.stream().anyMatch(name::startsWith))
                .sorted()
                .forEach(name -> arguments.add("-D" + name + "=" + System.getProperty(name)));
        arguments.add("-Dverbena.times=/lab-exchange/" + TIMES);
        arguments.add("-Dverbena.times.machine=true");
        arguments.add(GuestMain.class.getName());
        arguments.add("/lab-exchange");
        writeArguments(exchange.resolve("java.args"), arguments);
    }

    /** Writes a file for {@code java @file}. */
    static void writeArguments(Path file, List<String> arguments) throws IOException {
        Files.write(
                file,
                arguments.stream()
                        .map(argument -> '"' + argument.replace("\\", "\\\\").replace("\"", "\\\"") + '"')
                        .toList());
    }

    private static final class QemuRun implements Run {
        private final Process boot;
        private final Path console;
        private final int timeLimitSeconds;
        private final Thread endWithTheHost = new Thread(this::kill);

        QemuRun(Process boot, Path console, int timeLimitSeconds) {
            this.boot = boot;
            this.console = console;
            this.timeLimitSeconds = timeLimitSeconds;
            Runtime.getRuntime().addShutdownHook(endWithTheHost);
        }

        @Override
        public boolean isAlive() {
            return boot.isAlive();
        }

        @Override
        public String howItEnded() {
            if (boot.isAlive()) {
                return "the guest still runs";
            }
            return switch (boot.exitValue()) {
                case 0 -> "the guest ended";
                case 124 ->
                    "the guest was ended at its time limit of " + timeLimitSeconds + " s (-Dlab.timeLimitSeconds)";
                case 70 -> "the guest's kernel or QEMU died";
                case 71 -> "the guest's RDMA devices could not be set up";
                case GuestMain.SILENCE_STATUS ->
                    "the guest's JVM was ended since no test event came for minutes; the console has its threads";
                case 134 -> "the guest's JVM crashed: see hs_err.log in its exchange folder";
                case 137 -> "the guest's JVM was killed, perhaps for want of memory";
                default -> "the guest's JVM ended with status " + boot.exitValue();
            };
        }

        @Override
        public List<String> consoleTail() {
            try {
                // The terminal's line ends are not wanted in a report.
                List<String> lines = new String(Files.readAllBytes(console), StandardCharsets.UTF_8)
                        .replace("\r", "")
                        .lines()
                        .toList();
                return lines.subList(Math.max(0, lines.size() - CONSOLE_TAIL_LINES), lines.size());
            } catch (IOException e) {
                return List.of("(no console: " + e + ")");
            }
        }

        @Override
        public void close() {
            // Nothing in it is needed any more: what it left is on the host already.
            kill();
            try {
                if (!boot.waitFor(10, TimeUnit.SECONDS)) {
                    boot.destroyForcibly();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().removeShutdownHook(endWithTheHost);
        }

        private void kill() {
            List<ProcessHandle> descendants = boot.descendants().toList();
            boot.destroy();
            descendants.forEach(ProcessHandle::destroy);
        }
    }
}
