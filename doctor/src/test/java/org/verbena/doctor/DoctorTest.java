package org.verbena.doctor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.api.RdmaServer;
import org.verbena.api.RdmaServerSocketChannel;
import org.verbena.transport.CompletionLoopOptions;
import org.verbena.transport.provider.ProviderChoice;
import org.verbena.transport.spi.IncomingConnection;
import org.verbena.transport.spi.ListenOptions;
import org.verbena.transport.spi.Listener;
import org.verbena.transport.spi.ListenerHandler;

/** The examination of a machine that may have no device, and of peers on the software provider. */
@Timeout(120)
class DoctorTest {
    private static final String HOST = "127.0.0.1";

    private static Finding named(Diagnosis diagnosis, String check) {
        return diagnosis.findings().stream()
                .filter(finding -> finding.check().equals(check))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no check " + check + " in " + diagnosis));
    }

    private static RdmaServer echo() {
        return RdmaServer.builder()
                .provider("soft")
                .bind(HOST, 0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
    }

    @Test
    void examinesInOrderAndTellsAtOnce() {
        List<Finding> told = new ArrayList<>();
        Diagnosis diagnosis = new Doctor().onFinding(told::add).examine();
        assertThat(told).isEqualTo(diagnosis.findings());
        assertThat(told)
                .extracting(Finding::check)
                .startsWith("JVM", "requirements", "libraries", "kernel modules", "device nodes", "locked memory")
                .endsWith("loopback on soft, " + HOST, "loopback on shm, " + HOST);
        assertThat(named(diagnosis, "JVM").verdict()).isEqualTo(Verdict.OK);
        assertThat(named(diagnosis, "loopback on soft, " + HOST).verdict()).isEqualTo(Verdict.OK);
        assertThat(named(diagnosis, "loopback on soft, " + HOST).evidence()).containsAnyOf("on io_uring", "on NIO");
    }

    @Test
    void followsTheWayToAnEchoServer() {
        try (RdmaServer server = echo()) {
            Diagnosis diagnosis = new Doctor()
                    .peer(HOST, server.port())
                    .provider("soft")
                    .peerEchoes()
                    .examine();
            assertThat(named(diagnosis, "provider").evidence()).isEqualTo("soft: requested by name");
            assertThat(named(diagnosis, "connection").verdict()).isEqualTo(Verdict.OK);
            assertThat(named(diagnosis, "messages").evidence()).contains("64 B in ", "1048576 B in ");
        }
    }

    @Test
    void namesAPortWhereNobodyListens() throws Exception {
        try (Socket bound = new Socket()) { // which has a port, and does not listen
            bound.bind(new InetSocketAddress(HOST, 0));
            Diagnosis diagnosis = new Doctor()
                    .peer(HOST, bound.getLocalPort())
                    .provider("soft")
                    .examine();
            assertThat(named(diagnosis, "connection").verdict()).isEqualTo(Verdict.FAILURE);
            assertThat(named(diagnosis, "connection").evidence()).contains("nobody listens there");
            assertThat(diagnosis.worst()).isEqualTo(Verdict.FAILURE);
        }
    }

    @Test
    void namesAServerOfAnotherFraming() {
        RdmaEventLoopGroup loops = new RdmaEventLoopGroup("soft", 1);
        try {
            Channel server = new ServerBootstrap()
                    .group(loops)
                    .channel(RdmaServerSocketChannel.class)
                    .childHandler(new ChannelInboundHandlerAdapter())
                    .bind(HOST, 0)
                    .syncUninterruptibly()
                    .channel();
            int port = ((InetSocketAddress) server.localAddress()).getPort();
            Diagnosis diagnosis = new Doctor().peer(HOST, port).provider("soft").examine();
            assertThat(named(diagnosis, "connection").verdict()).isEqualTo(Verdict.FAILURE);
            assertThat(named(diagnosis, "connection").toString())
                    .contains("the server speaks STREAM, this channel MESSAGE: use RdmaSocketChannel");
        } finally {
            loops.shutdownGracefully(0, 5, TimeUnit.SECONDS).syncUninterruptibly();
        }
    }

    /** A listener whose queue is full: Linux drops what comes, as a firewall does. */
    @Test
    void namesAFirewall() throws Exception {
        List<Socket> queued = new ArrayList<>();
        try (ServerSocket deaf = new ServerSocket(0, 1, InetAddress.getByName(HOST))) {
            do {
                queued.add(new Socket());
            } while (isQueued(queued.getLast(), deaf.getLocalSocketAddress()));
            Diagnosis diagnosis = new Doctor()
                    .peer(HOST, deaf.getLocalPort())
                    .provider("soft")
                    .examine();
            assertThat(named(diagnosis, "connection").verdict()).isEqualTo(Verdict.FAILURE);
            assertThat(named(diagnosis, "connection").evidence())
                    .contains("not established within the connect timeout");
            assertThat(named(diagnosis, "connection").remedy())
                    .contains("no firewall there or on the way drops TCP port " + deaf.getLocalPort());
        } finally {
            for (Socket socket : queued) {
                socket.close();
            }
        }
    }

    /** Over loopback a connection is there at once, unless it is dropped. */
    private static boolean isQueued(Socket socket, SocketAddress to) throws IOException {
        try {
            socket.connect(to, 100);
            return true;
        } catch (SocketTimeoutException dropped) {
            return false;
        }
    }

    @Test
    void namesAServerOfAnotherVersion() {
        MultiThreadIoEventLoopGroup loops = new MultiThreadIoEventLoopGroup(
                1, ProviderChoice.choose("soft", null).provider().newIoHandlerFactory(CompletionLoopOptions.DEFAULTS));
        try {
            CompletableFuture<Integer> port = new CompletableFuture<>();
            ProviderChoice.choose("soft", null)
                    .provider()
                    .listen(
                            loops.next(),
                            new InetSocketAddress(HOST, 0),
                            ListenOptions.DEFAULTS,
                            new RejectsAsANewerRelease(port));
            Diagnosis diagnosis =
                    new Doctor().peer(HOST, port.join()).provider("soft").examine();
            assertThat(named(diagnosis, "connection").verdict()).isEqualTo(Verdict.FAILURE);
            assertThat(named(diagnosis, "connection").evidence())
                    .contains("this end speaks versions 1-1 of the protocol, the server 2: use the same release");
        } finally {
            loops.shutdownGracefully(0, 5, TimeUnit.SECONDS).syncUninterruptibly();
        }
    }

    /** Rejects as a server of a release that has left version 1 of the protocol behind. */
    private record RejectsAsANewerRelease(CompletableFuture<Integer> port) implements ListenerHandler {
        private static final String REASON = "protocol 1-1 is not 2";

        @Override
        public void onListening(Listener listener) {
            port.complete(listener.localAddress().getPort());
        }

        @Override
        public void onConnectRequest(Listener listener, IncomingConnection connection) {
            byte[] reason = REASON.getBytes(StandardCharsets.UTF_8);
            connection.reject(ByteBuffer.allocate(6 + reason.length)
                    .put("VRBN".getBytes(StandardCharsets.US_ASCII))
                    .put((byte) 0xff)
                    .put((byte) reason.length)
                    .put(reason)
                    .array());
        }

        @Override
        public void onClosed(Listener listener, @Nullable Throwable cause) {
            port.completeExceptionally(new AssertionError("it does not listen", cause));
        }
    }

    /** What a path does that drops packets over some size, as interfaces of different MTU make it. */
    @Test
    void namesAnMtuThatDiffers() {
        MessageHandler dropsTheLarge = MessageHandler.ofBytes((exchange, message) -> {
            if (message.length < 4_000) {
                exchange.reply(message);
            }
        });
        try (RdmaServer server = RdmaServer.builder().provider("soft").bind(HOST, 0, dropsTheLarge)) {
            Diagnosis diagnosis = new Doctor()
                    .peer(HOST, server.port())
                    .provider("soft")
                    .peerEchoes()
                    .examine();
            assertThat(named(diagnosis, "messages of 4096 bytes").verdict()).isEqualTo(Verdict.FAILURE);
            assertThat(named(diagnosis, "messages of 4096 bytes").remedy())
                    .contains("smaller messages passed: compare the MTU of both interfaces");
        }
    }

    @Test
    void saysThatAServerDoesNotEcho() {
        MessageHandler shouts = MessageHandler.ofBytes((exchange, message) -> exchange.reply(new byte[] {1}));
        try (RdmaServer server = RdmaServer.builder().provider("soft").bind(HOST, 0, shouts)) {
            Diagnosis diagnosis = new Doctor()
                    .peer(HOST, server.port())
                    .provider("soft")
                    .peerEchoes()
                    .examine();
            assertThat(named(diagnosis, "messages of 64 bytes").remedy()).contains("echo-server");
        }
    }

    @Test
    void namesAHostWithoutAnAddress() {
        Diagnosis diagnosis = new Doctor().peer("no.such.host.invalid", 1).examine();
        assertThat(named(diagnosis, "name no.such.host.invalid").verdict()).isEqualTo(Verdict.FAILURE);
    }

    @Test
    void connectsNothingWithoutAPort() {
        Diagnosis diagnosis = new Doctor().peer(HOST, 0).examine();
        assertThat(diagnosis.findings().getLast().check()).isEqualTo("route");
    }

    @Test
    void refusesAPortOutOfRange() {
        assertThatThrownBy(() -> new Doctor().peer(HOST, 65536))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("65536");
    }

    /** Nothing of a device is below this root. */
    @Test
    void aMachineWithoutADeviceIsNotBroken(@TempDir Path root) {
        assumeThat(hasDevice()).as("a device is here").isFalse();
        Diagnosis diagnosis = new Doctor(new SystemFiles(root)).provider("auto").examine();
        assertThat(diagnosis.worst()).as(diagnosis.toString()).isLessThan(Verdict.FAILURE);
        assertThat(named(diagnosis, "kernel modules").verdict()).isEqualTo(Verdict.SKIPPED);
        assertThat(named(diagnosis, "kernel modules").remedy()).isNotEmpty();
        assertThat(diagnosis.providers()).extracting(ProviderVerdict::provider).containsExactly("verbs", "soft", "shm");
        assertThat(diagnosis.providers().getFirst().verdict()).isEqualTo(Verdict.SKIPPED);
        assertThat(diagnosis.providers().get(1).verdict()).isEqualTo(Verdict.OK);
        assertThat(diagnosis.summary())
                .startsWith("verbs is not available, soft works, shm ")
                .contains("modprobe");
    }

    /** Which is what a program asks for that must not fall back. */
    @Test
    void aMachineWithoutADeviceIsBrokenForVerbs(@TempDir Path root) {
        assumeThat(hasDevice()).as("a device is here").isFalse();
        Diagnosis diagnosis =
                new Doctor(new SystemFiles(root)).provider("verbs").examine();
        assertThat(diagnosis.worst()).isEqualTo(Verdict.FAILURE);
        assertThat(diagnosis.providers().getFirst().verdict()).isEqualTo(Verdict.FAILURE);
        assertThat(diagnosis.providers().get(1).verdict()).isEqualTo(Verdict.OK);
    }

    private static boolean hasDevice() {
        return new DeviceChecks(SystemFiles.REAL).isAnyThere();
    }

    @Test
    void aDeviceThatFailsBesideOneThatWorksIsAWarning() {
        List<Finding> before = List.of(Finding.ok("JVM", ""), Finding.ok("requirements", ""));
        Finding works = Finding.ok("loopback on verbs, 10.0.0.1", "a send");
        Finding fails = Finding.failure("loopback on verbs, 10.0.0.2", "no answer", "look");
        assertThat(ProviderVerdict.of(before.get(1), before, List.of(works, fails)))
                .contains(new ProviderVerdict(
                        "verbs", Verdict.WARNING, "loopback on verbs, 10.0.0.2: no answer", "look"));
        assertThat(ProviderVerdict.of(before.get(1), before, List.of(fails))
                        .getFirst()
                        .verdict())
                .isEqualTo(Verdict.FAILURE);
    }

    @Test
    void warnsOfAJavaThatMovesPinnedArrays() {
        Finding finding = JvmCheck.check(Runtime.Version.parse("25.0.1+8-LTS"));
        assertThat(finding.verdict()).isEqualTo(Verdict.WARNING);
        assertThat(finding.evidence()).contains("25.0.1");
        assertThat(finding.remedy()).contains("25.0.3");
        assertThat(JvmCheck.check(Runtime.Version.parse("25.0.3+9-LTS")).verdict())
                .isEqualTo(JvmCheck.check(Runtime.Version.parse("26.0.1+8")).verdict())
                .isEqualTo(Verdict.OK);
        assertThat(JvmCheck.check(Runtime.Version.parse("24.0.2+12")).verdict()).isEqualTo(Verdict.FAILURE);
    }

    @Test
    void sumsUpTheFirstFailure() {
        Finding fine = Finding.ok("a", "b");
        Finding warning = Finding.warning("memory", "64 KiB", "raise it");
        Finding failure = Finding.failure("modules", "none", "modprobe");
        assertThat(new Diagnosis(List.of(), List.of()).summary()).isEqualTo("All is well.");
        assertThat(new Diagnosis(List.of(fine, warning), List.of()).summary())
                .isEqualTo("With a warning: memory: 64 KiB. What to do: raise it");
        ProviderVerdict works = new ProviderVerdict("soft", Verdict.OK, "", "");
        ProviderVerdict lacks = new ProviderVerdict("verbs", Verdict.SKIPPED, "no device", "modprobe");
        assertThat(new Diagnosis(List.of(warning, failure, failure), List.of(works)).summary())
                .isEqualTo("soft works. Failed: modules: none. What to do: modprobe (and 1 more)");
        assertThat(new Diagnosis(List.of(fine), List.of(lacks, works)).summary())
                .isEqualTo("verbs is not available, soft works. For verbs: no device. What to do: modprobe");
        assertThat(new Diagnosis(List.of(warning, failure), List.of()).worst()).isEqualTo(Verdict.FAILURE);
    }
}
