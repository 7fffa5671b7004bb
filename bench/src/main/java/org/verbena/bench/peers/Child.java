package org.verbena.bench.peers;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.verbena.bench.JavaProcess;

/**
 * The two processes of a contender. The server prints "READY address"; the client, one "RESULT" line per workload.
 * Both end when their standard input does, so that none outlives the orchestrator.
 */
final class Child {
    static final String READY = "READY ";

    private static final CountDownLatch stop = new CountDownLatch(1);

    public static void main(String[] args) throws Exception {
        Contender contender = Contenders.named(args[1]);
        Thread.ofPlatform().daemon().name("watchdog").start(Child::stopAtEndOfInput);
        try {
            switch (args[0]) {
                case "server" -> serve(contender, Path.of(args[2]));
                case "client" ->
                    measure(
                            contender,
                            args[2],
                            Long.parseLong(args[3]),
                            Double.parseDouble(args[4]),
                            Double.parseDouble(args[5]));
                default -> throw new IllegalArgumentException(args[0]);
            }
        } catch (Throwable t) {
            t.printStackTrace();
            System.out.println(
                    JavaProcess.FAILED + t.toString().lines().findFirst().orElse(""));
            System.out.flush();
            Runtime.getRuntime().halt(1);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void serve(Contender contender, Path scratch) throws Exception {
        try (Contender.Server server = contender.startServer(scratch)) {
            System.out.println(READY + server.address());
            System.out.flush();
            stop.await();
        }
    }

    private static void stopAtEndOfInput() {
        try {
            while (System.in.read() >= 0) {
                // nothing is ever written to it
            }
        } catch (IOException ignored) {
            // the same as its end
        }
        stop.countDown();
        sleep(3_000); // for an orderly close
        Runtime.getRuntime().halt(0);
    }

    private static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static void measure(Contender contender, String address, long serverPid, double warmup, double seconds)
            throws Exception {
        try (Contender.Client client = contender.connect(address)) {
            for (Workload workload : Workload.ALL) { // all sizes first, so that the JIT has seen everything
                client.run(new Load(workload, warmup));
            }
            for (Workload workload : Workload.ALL) {
                client.run(new Load(workload, warmup / 2));
                System.out.println("RESULT\t" + workload + "\t"
                        + one(client, workload, seconds, serverPid).toLine());
            }
        }
    }

    private static Result one(Contender.Client client, Workload workload, double seconds, long serverPid)
            throws Exception {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long cpu = cpuNanos(serverPid);
        long machine = machineNanos();
        Load load = new Load(workload, seconds); // its clock starts here: the first of the calls above take long
        long allocated = threads.getTotalThreadAllocatedBytes();
        client.run(load);
        cpu = cpuNanos(serverPid) - cpu;
        machine = machineNanos() - machine;
        allocated = threads.getTotalThreadAllocatedBytes() - allocated;
        if (!load.finished()) {
            throw new IllegalStateException("returned before the load was finished");
        }
        if (load.messages() == 0) {
            throw new IllegalStateException("sent nothing in " + seconds + " s: give it more with --seconds");
        }
        var times = load.roundTrips();
        double rate = load.messages() / load.seconds();
        return new Result(
                times.getValueAtPercentile(50) / 1e3,
                times.getValueAtPercentile(90) / 1e3,
                times.getValueAtPercentile(99) / 1e3,
                times.getMaxValue() / 1e3,
                rate,
                rate * workload.size() / 1e6,
                (double) allocated / load.messages(),
                cpu / 1e9 / load.seconds(),
                Math.max(0, machine - cpu) / 1e9 / load.seconds());
    }

    /** CPU time of the whole machine so far, but for its idle time: the other fields of the first line. */
    private static long machineNanos() throws IOException {
        try (BufferedReader in = Files.newBufferedReader(Path.of("/proc/stat"))) {
            String[] ticks = in.readLine().trim().split(" +"); // "cpu", user, nice, system, idle, iowait, irq, ...
            long busy = 0;
            for (int i = 1; i <= 8; i++) {
                busy += i == 4 || i == 5 ? 0 : Long.parseLong(ticks[i]);
            }
            return busy * 10_000_000; // 100 ticks a second
        }
    }

    /** CPU time of both processes so far. */
    private static long cpuNanos(long serverPid) {
        long server = ProcessHandle.of(serverPid)
                .flatMap(p -> p.info().totalCpuDuration())
                .orElse(Duration.ZERO)
                .toNanos();
        return server + ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
