package org.verbena.bench.ratis;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.HdrHistogram.Histogram;
import org.apache.ratis.RaftConfigKeys;
import org.apache.ratis.client.RaftClient;
import org.apache.ratis.client.RaftClientConfigKeys;
import org.apache.ratis.conf.Parameters;
import org.apache.ratis.conf.RaftProperties;
import org.apache.ratis.grpc.GrpcConfigKeys;
import org.apache.ratis.netty.NettyConfigKeys;
import org.apache.ratis.protocol.Message;
import org.apache.ratis.protocol.RaftGroup;
import org.apache.ratis.protocol.RaftGroupId;
import org.apache.ratis.protocol.RaftPeer;
import org.apache.ratis.rpc.RpcType;
import org.apache.ratis.rpc.SupportedRpcType;
import org.apache.ratis.server.RaftServer;
import org.apache.ratis.server.RaftServerConfigKeys;
import org.apache.ratis.statemachine.impl.BaseStateMachine;
import org.apache.ratis.thirdparty.com.google.protobuf.ByteString;
import org.apache.ratis.util.FileUtils;
import org.apache.ratis.util.NetUtils;
import org.apache.ratis.util.TimeDuration;
import org.verbena.ratis.RdmaConfigKeys;
import org.verbena.ratis.RdmaRpcType;

/**
 * Appends to a Raft group of three servers and a client in this JVM: how long one takes, one at a time, and how many a
 * second there are with several under way. {@code bench/ratis} runs one type of RPC after the other.
 */
final class Appends {
    private static final TimeDuration LEADER_TIMEOUT = TimeDuration.valueOf(3, TimeUnit.SECONDS);

    /** One of Ratis' own types, or a provider of Verbena. */
    private final String name;

    private final long nanos;
    private final Message message;
    private final int underWay;
    private final boolean inMemory;
    private final String host;

    private Appends(String name, long nanos, Message message, int underWay, boolean inMemory, String host) {
        this.name = name;
        this.nanos = nanos;
        this.message = message;
        this.underWay = underWay;
        this.inMemory = inMemory;
        this.host = host;
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length != 6) {
            System.err.println("Appends netty|grpc|PROVIDER SECONDS BYTES UNDER_WAY memory|disk HOST");
            System.exit(64);
        }
        long nanos = TimeUnit.SECONDS.toNanos(Long.parseLong(arguments[1]));
        Message message = Message.valueOf(ByteString.copyFrom(new byte[Integer.parseInt(arguments[2])]));
        int underWay = Integer.parseInt(arguments[3]);
        new Appends(arguments[0], nanos, message, underWay, arguments[4].equals("memory"), arguments[5]).measure();
        System.exit(0); // Ratis' own types leave threads
    }

    private RpcType type() {
        return switch (name) {
            case "netty" -> SupportedRpcType.NETTY;
            case "grpc" -> SupportedRpcType.GRPC;
            default -> new RdmaRpcType();
        };
    }

    private Parameters parameters() {
        Parameters parameters = new Parameters();
        RdmaConfigKeys.Server.setCustomizer(parameters, builder -> builder.provider(name));
        RdmaConfigKeys.Client.setCustomizer(parameters, builder -> builder.provider(name));
        return parameters;
    }

    private RaftProperties properties() {
        RaftProperties properties = new RaftProperties();
        RaftConfigKeys.Rpc.setType(properties, type());
        RaftServerConfigKeys.Log.setUseMemory(properties, inMemory);
        RaftClientConfigKeys.Async.setOutstandingRequestsMax(properties, underWay + 1);
        // No leader is changed by a machine that is slow.
        RaftServerConfigKeys.Rpc.setTimeoutMin(properties, LEADER_TIMEOUT);
        RaftServerConfigKeys.Rpc.setTimeoutMax(properties, LEADER_TIMEOUT.multiply(2));
        RaftClientConfigKeys.Rpc.setRequestTimeout(properties, LEADER_TIMEOUT.multiply(10));
        RaftServerConfigKeys.Rpc.setRequestTimeout(properties, LEADER_TIMEOUT.multiply(10));
        return properties;
    }

    private RaftServer server(RaftPeer peer, RaftGroup group, Path folder) throws IOException {
        RaftProperties properties = properties();
        int port = NetUtils.createSocketAddr(peer.getAddress()).getPort();
        NettyConfigKeys.Server.setPort(properties, port);
        GrpcConfigKeys.Server.setPort(properties, port);
        NettyConfigKeys.Server.setHost(properties, host);
        GrpcConfigKeys.Server.setHost(properties, host);
        RdmaConfigKeys.Server.setHost(properties, host);
        RdmaConfigKeys.Server.setPort(properties, port);
        RaftServerConfigKeys.setStorageDir(
                properties, List.of(folder.resolve(peer.getId().toString()).toFile()));
        RaftServer server = RaftServer.newBuilder()
                .setServerId(peer.getId())
                .setGroup(group)
                .setStateMachine(new BaseStateMachine())
                .setProperties(properties)
                .setParameters(parameters())
                .build();
        server.start();
        return server;
    }

    private void measure() throws Exception {
        Path folder = Files.createTempDirectory("appends");
        List<RaftPeer> peers = IntStream.range(0, 3)
                .mapToObj(number -> RaftPeer.newBuilder()
                        .setId("s" + number)
                        .setAddress(host + ":" + NetUtils.getFreePort())
                        .build())
                .toList();
        RaftGroup group = RaftGroup.valueOf(RaftGroupId.randomId(), peers);
        List<RaftServer> servers = new ArrayList<>();
        for (RaftPeer peer : peers) {
            servers.add(server(peer, group, folder));
        }
        try (RaftClient client = RaftClient.newBuilder()
                .setRaftGroup(group)
                .setProperties(properties())
                .setParameters(parameters())
                .build()) {
            oneAtATime(client); // the compiler's time, and the election's
            Histogram taken = oneAtATime(client);
            severalAtOnce(client);
            String several = severalAtOnce(client);
            System.out.printf(
                    "%-6s append p50 %,.0f us, p99 %,.0f us; %s%n",
                    name, taken.getValueAtPercentile(50) / 1_000.0, taken.getValueAtPercentile(99) / 1_000.0, several);
        } finally {
            for (RaftServer server : servers) {
                server.close();
            }
            FileUtils.deleteFully(folder);
        }
    }

    /** The times of all appends in nanoseconds. */
    private Histogram oneAtATime(RaftClient client) throws IOException {
        Histogram taken = new Histogram(3);
        long begin = System.nanoTime();
        for (long now = begin; now - begin < nanos; ) {
            if (!client.io().send(message).isSuccess()) {
                throw new IOException(name + ": an append has failed");
            }
            long then = System.nanoTime();
            taken.recordValue(then - now);
            now = then;
        }
        return taken;
    }

    private String severalAtOnce(RaftClient client) throws Exception {
        OperatingSystemMXBean system = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
        Semaphore room = new Semaphore(underWay);
        AtomicReference<Throwable> failed = new AtomicReference<>();
        long begin = System.nanoTime();
        long cpu = system.getProcessCpuTime();
        long count = 0;
        while (System.nanoTime() - begin < nanos) {
            room.acquire();
            count++;
            client.async().send(message).whenComplete((reply, failure) -> {
                if (failure != null || !reply.isSuccess()) {
                    failed.set(failure != null ? failure : reply.getException());
                }
                room.release();
            });
        }
        room.acquire(underWay);
        double perSecond = count * 1e9 / (System.nanoTime() - begin);
        double cpuMicros = (system.getProcessCpuTime() - cpu) / 1e3 / count;
        if (failed.get() != null) {
            throw new IOException(name + ": an append has failed", failed.get());
        }
        return "%,.0f appends/s with %d under way, %,.0f us of CPU time each".formatted(perSecond, underWay, cpuMicros);
    }
}
