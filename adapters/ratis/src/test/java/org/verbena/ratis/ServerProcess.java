package org.verbena.ratis;

import java.io.File;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.ratis.conf.Parameters;
import org.apache.ratis.conf.RaftProperties;
import org.apache.ratis.protocol.RaftGroup;
import org.apache.ratis.protocol.RaftGroupId;
import org.apache.ratis.protocol.RaftPeer;
import org.apache.ratis.protocol.RaftPeerId;
import org.apache.ratis.server.storage.RaftStorage.StartupOption;
import org.verbena.transport.spi.ChildJvm;

/** A server of a group in a process of its own, to be killed. It ends when its parent does. */
final class ServerProcess {
    private static final String READY = "the server has begun";

    private final Process process;

    private ServerProcess(Process process) {
        this.process = process;
    }

    /** Starts one, and waits until it listens. */
    static ServerProcess start(
            String provider, RaftGroup group, RaftPeerId id, Path folder, StartupOption option, long electionMillis)
            throws IOException {
        String peers = group.getPeers().stream()
                .map(peer -> peer.getId() + "=" + peer.getAddress())
                .collect(Collectors.joining(","));
        Process process = new ProcessBuilder(ChildJvm.command(
                        List.of(),
                        ServerProcess.class,
                        provider,
                        group.getGroupId().getUuid().toString(),
                        peers,
                        id.toString(),
                        folder.resolve(id.toString()).toString(),
                        option.name(),
                        String.valueOf(electionMillis)))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        ServerProcess server = new ServerProcess(process);
        String line = process.inputReader().readLine();
        while (line != null && !line.equals(READY)) {
            line = process.inputReader().readLine();
        }
        if (line == null) {
            throw new AssertionError("the server " + id + " has ended before it began");
        }
        return server;
    }

    /** SIGKILL, and waits until it is gone. */
    void kill() throws InterruptedException {
        process.destroyForcibly();
        process.waitFor();
    }

    /** The process. */
    public static void main(String... arguments) throws IOException {
        String provider = arguments[0];
        List<RaftPeer> peers = Stream.of(arguments[2].split(","))
                .map(peer -> peer.split("="))
                .map(peer ->
                        RaftPeer.newBuilder().setId(peer[0]).setAddress(peer[1]).build())
                .toList();
        RaftProperties properties = new RaftProperties();
        Cluster.set(properties, Long.parseLong(arguments[6]));
        Parameters parameters = new Parameters();
        RdmaConfigKeys.Server.setCustomizer(parameters, builder -> builder.provider(provider));
        RdmaConfigKeys.Client.setCustomizer(parameters, builder -> builder.provider(provider));
        Cluster.start(
                RaftGroup.valueOf(RaftGroupId.valueOf(UUID.fromString(arguments[1])), peers),
                RaftPeerId.valueOf(arguments[3]),
                new CountingStateMachine(),
                new File(arguments[4]),
                StartupOption.valueOf(arguments[5]),
                properties,
                parameters);
        System.out.println(READY);
        while (System.in.read() >= 0) {
            // the parent writes nothing
        }
        Runtime.getRuntime().halt(0);
    }
}
