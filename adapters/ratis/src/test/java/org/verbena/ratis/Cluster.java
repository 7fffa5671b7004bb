package org.verbena.ratis;

import java.io.File;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.ratis.RaftConfigKeys;
import org.apache.ratis.client.RaftClient;
import org.apache.ratis.client.RaftClientConfigKeys;
import org.apache.ratis.conf.Parameters;
import org.apache.ratis.conf.RaftProperties;
import org.apache.ratis.protocol.RaftGroup;
import org.apache.ratis.protocol.RaftGroupId;
import org.apache.ratis.protocol.RaftPeer;
import org.apache.ratis.protocol.RaftPeerId;
import org.apache.ratis.retry.RetryPolicies;
import org.apache.ratis.retry.RetryPolicy;
import org.apache.ratis.server.RaftServer;
import org.apache.ratis.server.RaftServerConfigKeys;
import org.apache.ratis.server.storage.RaftStorage;
import org.apache.ratis.statemachine.StateMachine;
import org.apache.ratis.util.ExitUtils;
import org.apache.ratis.util.FileUtils;
import org.apache.ratis.util.TimeDuration;
import org.verbena.api.ServerInterceptor;
import org.verbena.transport.spi.Patience;

/** Servers of one group in this JVM, each with a port of its own and a folder, and a network that can be cut. */
final class Cluster implements AutoCloseable {
    private final String provider;
    private final Path folder;
    private final RaftProperties properties;
    private final RaftGroup group;
    private final Map<RaftPeerId, RaftServer> servers = new ConcurrentHashMap<>();
    private final Map<RaftPeerId, CountingStateMachine> machines = new ConcurrentHashMap<>();
    private final Set<RaftPeerId> cut = ConcurrentHashMap.newKeySet();

    /** Servers that do not go on with what the leader appends, and cannot lead themselves. */
    private final Map<RaftPeerId, CountDownLatch> held = new ConcurrentHashMap<>();

    /**
     * Starts all.
     *
     * @param properties in which the rest is set
     * @param electionMillis what a follower waits for the leader at least, twice that at most
     */
    Cluster(String provider, String host, Path folder, int size, RaftProperties properties, long electionMillis)
            throws IOException {
        ExitUtils.disableSystemExit();
        this.provider = provider;
        this.folder = folder;
        this.properties = properties;
        set(properties, electionMillis);
        group = group(host, size);
        for (RaftPeer peer : group.getPeers()) {
            start(peer.getId(), RaftStorage.StartupOption.FORMAT);
        }
    }

    /** For Verbena, with the times of a group. */
    static void set(RaftProperties properties, long electionMillis) {
        RaftConfigKeys.Rpc.setType(properties, new RdmaRpcType());
        RaftServerConfigKeys.Rpc.setFirstElectionTimeoutMin(properties, millis(electionMillis / 20));
        RaftServerConfigKeys.Rpc.setFirstElectionTimeoutMax(properties, millis(electionMillis / 10));
        RaftServerConfigKeys.Rpc.setTimeoutMin(properties, millis(electionMillis));
        RaftServerConfigKeys.Rpc.setTimeoutMax(properties, millis(2 * electionMillis));
        RaftClientConfigKeys.Rpc.setRequestTimeout(properties, millis(2 * electionMillis));
    }

    /** A group whose servers have names and ports, and do not run yet. */
    static RaftGroup group(String host, int size) {
        List<RaftPeer> peers = IntStream.range(0, size)
                .mapToObj(number -> RaftPeer.newBuilder()
                        .setId("s" + number)
                        .setAddress(host + ":" + freePort())
                        .build())
                .toList();
        return RaftGroup.valueOf(RaftGroupId.randomId(), peers);
    }

    static TimeDuration millis(long count) {
        return TimeDuration.valueOf(count, TimeUnit.MILLISECONDS);
    }

    /** One that nobody has, below those that the system gives to programs that ask for any. */
    private static int freePort() {
        while (true) {
            int port = ThreadLocalRandom.current().nextInt(20_000, 32_000);
            try (ServerSocket free = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return free.getLocalPort();
            } catch (BindException taken) {
                continue; // another one
            } catch (IOException failure) {
                throw new AssertionError(failure);
            }
        }
    }

    RaftGroup group() {
        return group;
    }

    List<RaftPeerId> ids() {
        return group.getPeers().stream().map(RaftPeer::getId).toList();
    }

    void start(RaftPeerId id, RaftStorage.StartupOption option) throws IOException {
        File files = folder.resolve(id.toString()).toFile();
        if (option == RaftStorage.StartupOption.FORMAT) {
            FileUtils.deleteFully(files);
        }
        CountingStateMachine machine = new CountingStateMachine();
        servers.put(id, start(group, id, machine, files, option, properties, parametersOf(id)));
        machines.put(id, machine);
    }

    /** Starts one server of a group in this JVM. */
    static RaftServer start(
            RaftGroup group,
            RaftPeerId id,
            StateMachine machine,
            File files,
            RaftStorage.StartupOption option,
            RaftProperties properties,
            Parameters parameters)
            throws IOException {
        RaftProperties own = new RaftProperties(properties);
        RaftServerConfigKeys.setStorageDir(own, List.of(files));
        String[] address = group.getPeer(id).getAddress().split(":");
        RdmaConfigKeys.Server.setHost(own, address[0]);
        RdmaConfigKeys.Server.setPort(own, Integer.parseInt(address[1]));
        RaftServer server = RaftServer.newBuilder()
                .setServerId(id)
                .setGroup(group)
                .setStateMachine(machine)
                .setProperties(own)
                .setParameters(parameters)
                .setOption(option)
                .build();
        server.start();
        return server;
    }

    private Parameters parametersOf(RaftPeerId id) {
        ServerInterceptor network = (exchange, message, next) -> {
            CountDownLatch wait = held.get(id);
            if (wait != null && "ratis/append".equals(exchange.method())) {
                wait.await();
            }
            if (!cut.contains(id)) {
                next.onMessage(exchange, message);
            }
        };
        Parameters parameters = new Parameters();
        RdmaConfigKeys.Server.setCustomizer(
                parameters, builder -> builder.provider(provider).intercept(network));
        RdmaConfigKeys.Client.setCustomizer(
                parameters,
                builder -> builder.provider(provider).intercept(request -> {
                    if (cut.contains(id) || held.containsKey(id)) {
                        throw new IOException(id + " is cut off");
                    }
                }));
        return parameters;
    }

    void stop(RaftPeerId... ids) {
        close(Arrays.stream(ids).map(servers::remove).toList());
    }

    /** All at once: Ratis takes a second for each. */
    private static void close(Collection<RaftServer> servers) {
        List<CompletableFuture<Void>> closing = new ArrayList<>();
        for (RaftServer server : servers) {
            CompletableFuture<Void> closed = new CompletableFuture<>();
            closing.add(closed);
            Thread.startVirtualThread(() -> {
                try {
                    server.close();
                    closed.complete(null);
                } catch (IOException | RuntimeException failure) {
                    closed.completeExceptionally(failure);
                }
            });
        }
        closing.forEach(each -> Patience.await("a server that closes", each));
    }

    /** Nothing gets in or out from now on. */
    void cutOff(RaftPeerId id) {
        cut.add(id);
    }

    void heal(RaftPeerId id) {
        cut.remove(id);
    }

    void hold(RaftPeerId id) {
        held.put(id, new CountDownLatch(1));
    }

    void release(RaftPeerId id) {
        held.remove(id).countDown();
    }

    CountingStateMachine machine(RaftPeerId id) {
        return machines.get(id);
    }

    RaftServer.Division division(RaftPeerId id) {
        try {
            return servers.get(id).getDivision(group.getGroupId());
        } catch (IOException failure) {
            throw new AssertionError(failure);
        }
    }

    /** Waits for a leader that is ready, of those that are not cut off. */
    RaftPeerId leader() {
        List<RaftPeerId> found = new ArrayList<>();
        Patience.until("a leader", () -> {
            found.clear();
            servers.keySet().stream()
                    .filter(id -> !cut.contains(id))
                    .filter(id -> division(id).getInfo().isLeaderReady())
                    .forEach(found::add);
            return found.size() == 1;
        });
        return found.getFirst();
    }

    /** Those that run and do not lead. */
    List<RaftPeerId> followers() {
        RaftPeerId leader = leader();
        return servers.keySet().stream().filter(id -> !id.equals(leader)).toList();
    }

    RaftClient client() {
        return client(group);
    }

    RaftClient client(RaftGroup of) {
        return client(of, RetryPolicies.retryForeverWithSleep(millis(50)));
    }

    RaftClient client(RaftGroup of, RetryPolicy retries) {
        Parameters parameters = new Parameters();
        RdmaConfigKeys.Client.setCustomizer(parameters, builder -> builder.provider(provider));
        return RaftClient.newBuilder()
                .setRaftGroup(of)
                .setProperties(properties)
                .setParameters(parameters)
                .setRetryPolicy(retries)
                .build();
    }

    /** Waits until all servers that run have applied the same messages in the same order. */
    void awaitSame(long count) {
        Patience.until(
                "every server has applied " + count,
                () -> servers.keySet().stream().allMatch(id -> machine(id).count() == count));
        Set<CountingStateMachine.State> states =
                servers.keySet().stream().map(id -> machine(id).state()).collect(Collectors.toSet());
        if (states.size() != 1) {
            throw new AssertionError("the servers have applied other messages: " + states);
        }
    }

    @Override
    public void close() {
        held.values().forEach(CountDownLatch::countDown);
        cut.clear();
        close(servers.values());
    }
}
