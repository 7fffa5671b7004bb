package org.verbena.bench.peers.contenders;

import io.aeron.Aeron;
import io.aeron.CommonContext;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import java.io.IOException;
import java.net.DatagramSocket;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.AgentInvoker;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.YieldingIdleStrategy;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.Place;

/**
 * Aeron over shared memory (IPC; the server's process holds the media driver) or over UDP (a media driver in each
 * process, as if on two machines). The drivers have no threads of their own but run in the threads that send and
 * receive (INVOKER), so that there is one busy thread a process, which is all that two cores can carry.
 */
@SuppressWarnings({"NullAway", "CatchAndPrintStackTrace"}) // a measured program: what it prints goes to its log
public final class AeronContender implements Contender {

    public enum Medium {
        IPC,
        UDP
    }

    private static final int REQUESTS = 1001;
    private static final int ECHOES = 1002;
    private static final int FRAGMENTS = 64;
    private static final int TERM = 16 << 20; // the longest message is an eighth of it

    private static final int MTU = 65504; // the most, which loopback carries; 8192 was slower for large messages

    private final Medium medium;

    public AeronContender(Medium medium) {
        this.medium = medium;
    }

    @Override
    public List<String> jvmFlags() {
        return List.of(
                "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED", // Agrona
                "--add-opens=java.base/java.util.zip=ALL-UNNAMED",
                "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", // the driver's selector
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "-Dagrona.disable.bounds.checks=true");
    }

    private static String folder() {
        return CommonContext.getAeronDirectoryName() + "-peerbench-"
                + ProcessHandle.current().pid();
    }

    private static MediaDriver driver() {
        return MediaDriver.launch(new MediaDriver.Context()
                .aeronDirectoryName(folder())
                .dirDeleteOnStart(true)
                .dirDeleteOnShutdown(true)
                .threadingMode(ThreadingMode.INVOKER)
                .publicationTermBufferLength(TERM)
                .ipcTermBufferLength(TERM)
                .termBufferSparseFile(false)
                .mtuLength(MTU)
                .ipcMtuLength(MTU)
                .socketRcvbufLength(4 << 20)
                .socketSndbufLength(4 << 20)
                .initialWindowLength(2 << 20));
    }

    private static Aeron aeron(String folder, MediaDriver driver) {
        return Aeron.connect(new Aeron.Context()
                .aeronDirectoryName(folder)
                .driverAgentInvoker(driver == null ? null : driver.sharedAgentInvoker())
                .useConductorAgentInvoker(true));
    }

    private String channel(String port) {
        String host = Place.host();
        return medium == Medium.IPC
                ? "aeron:ipc"
                : "aeron:udp?endpoint=" + (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
    }

    /** What a thread that uses Aeron does between messages: run the driver, Aeron's conductor, and yield. */
    private record Duties(AgentInvoker driver, AgentInvoker conductor, IdleStrategy idle) {

        Duties(MediaDriver driver, Aeron aeron) {
            this(
                    driver == null ? null : driver.sharedAgentInvoker(),
                    aeron.conductorAgentInvoker(),
                    new YieldingIdleStrategy());
        }

        void run(int work) {
            int done = work + conductor.invoke();
            if (driver != null) {
                done += driver.invoke();
            }
            idle.idle(done);
        }
    }

    @Override
    public Server startServer(Path scratch) throws IOException {
        if (medium == Medium.IPC) {
            Place.refuseHost("shared memory");
        }
        String requestPort = freePort();
        String echoPort = freePort();
        MediaDriver driver = driver();
        Aeron aeron = aeron(driver.aeronDirectoryName(), driver);
        Duties duties = new Duties(driver, aeron);
        Subscription requests = aeron.addSubscription(channel(requestPort), REQUESTS);
        ExclusivePublication echoes = aeron.addExclusivePublication(channel(echoPort), ECHOES);
        FragmentAssembler assembler = new FragmentAssembler((buffer, offset, length, header) -> {
            while (!accepted(echoes.offer(buffer, offset, length))) {
                duties.run(0);
            }
        });
        AtomicBoolean stopping = new AtomicBoolean();
        CountDownLatch closed = new CountDownLatch(1);
        Thread.ofPlatform().daemon().name("echo").start(() -> {
            while (!stopping.get()) {
                duties.run(requests.poll(assembler, FRAGMENTS));
            }
            aeron.close();
            driver.close();
            closed.countDown();
        });
        return new Server() {
            @Override
            public String address() {
                return String.join(" ", driver.aeronDirectoryName(), requestPort, echoPort);
            }

            @Override
            public void close() throws InterruptedException {
                stopping.set(true);
                closed.await();
            }
        };
    }

    private static boolean accepted(long position) {
        if (position == Publication.CLOSED || position == Publication.MAX_POSITION_EXCEEDED) {
            throw new IllegalStateException(Publication.errorString(position));
        }
        return position >= 0;
    }

    private static String freePort() throws IOException {
        try (DatagramSocket socket = new DatagramSocket(Place.address(0))) {
            return Integer.toString(socket.getLocalPort());
        }
    }

    @Override
    public Client connect(String address) {
        String[] parts = address.split(" ");
        MediaDriver driver = medium == Medium.IPC ? null : driver();
        Aeron aeron = aeron(driver == null ? parts[0] : driver.aeronDirectoryName(), driver);
        Duties duties = new Duties(driver, aeron);
        Subscription echoes = aeron.addSubscription(channel(parts[2]), ECHOES);
        ExclusivePublication requests = aeron.addExclusivePublication(channel(parts[1]), REQUESTS);
        while (!requests.isConnected() || !echoes.isConnected()) {
            duties.run(0);
        }
        return new Client() {
            private Load load;
            private final FragmentAssembler assembler = new FragmentAssembler(this::echoed);

            private void echoed(DirectBuffer buffer, int offset, int length, io.aeron.logbuffer.Header header) {
                load.echoed(buffer.getLong(offset, ByteOrder.BIG_ENDIAN), length, buffer.getByte(offset + length - 1));
            }

            @Override
            public void run(Load load) {
                this.load = load;
                UnsafeBuffer message = new UnsafeBuffer(load.payload);
                boolean pending = false; // whether the message was refused and must be offered again
                while (!load.finished()) {
                    int work = 0;
                    while (true) {
                        if (!pending) {
                            long sequence = load.next();
                            if (sequence < 0) {
                                break;
                            }
                            message.putLong(0, sequence, ByteOrder.BIG_ENDIAN);
                        }
                        pending = !accepted(requests.offer(message, 0, load.size));
                        if (pending) {
                            break;
                        }
                        work++;
                    }
                    duties.run(work + echoes.poll(assembler, FRAGMENTS));
                }
            }

            @Override
            public void close() {
                aeron.close();
                if (driver != null) {
                    driver.close();
                }
            }
        };
    }
}
