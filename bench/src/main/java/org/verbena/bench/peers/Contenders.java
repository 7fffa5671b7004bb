package org.verbena.bench.peers;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.verbena.bench.peers.contenders.AeronContender;
import org.verbena.bench.peers.contenders.BlockingContender;
import org.verbena.bench.peers.contenders.FlightContender;
import org.verbena.bench.peers.contenders.GrpcContender;
import org.verbena.bench.peers.contenders.GrpcContender.Kind;
import org.verbena.bench.peers.contenders.GrpcContender.Transport;
import org.verbena.bench.peers.contenders.NettyContender;
import org.verbena.bench.peers.contenders.ProtocolContender;
import org.verbena.bench.peers.contenders.RSocketContender;
import org.verbena.bench.peers.contenders.ReactorContender;
import org.verbena.bench.peers.contenders.RequestContender;
import org.verbena.bench.peers.contenders.SpinningContender;
import org.verbena.bench.peers.contenders.VerbenaContender;
import org.verbena.bench.peers.contenders.VertxContender;

/** The contenders by name. Add one here, or name its class in full on the command line. */
final class Contenders {
    static final Map<String, Supplier<Contender>> ALL = new LinkedHashMap<>();

    static {
        ALL.put("socket", () -> new BlockingContender(BlockingContender.Io.STREAMS));
        ALL.put("socket-verbena", () -> new BlockingContender(BlockingContender.Io.RDMA_STREAMS));
        ALL.put("channel", () -> new BlockingContender(BlockingContender.Io.CHANNEL));
        ALL.put("channel-uds", () -> new BlockingContender(BlockingContender.Io.UNIX_CHANNEL));
        ALL.put("channel-spin", SpinningContender::new);
        ALL.put("verbena", () -> new VerbenaContender(false));
        ALL.put("verbena-protocol", () -> new ProtocolContender(false));
        ALL.put("verbena-claim", () -> new ProtocolContender(true));
        ALL.put("verbena-rendezvous", () -> new VerbenaContender(false, 64 << 10));
        ALL.put("verbena-nio", () -> new VerbenaContender("nio"));
        ALL.put("verbena-io_uring", () -> new VerbenaContender("io_uring"));
        ALL.put("verbena-crc", () -> new VerbenaContender(true));
        ALL.put("verbena-requests", RequestContender::new);
        ALL.put("netty-nio", () -> new NettyContender(NettyContender.Transport.NIO));
        ALL.put("netty-io_uring", () -> new NettyContender(NettyContender.Transport.IO_URING));
        ALL.put("netty-verbena", () -> new NettyContender(NettyContender.Transport.VERBENA));
        ALL.put("aeron-ipc", () -> new AeronContender(AeronContender.Medium.IPC));
        ALL.put("aeron-udp", () -> new AeronContender(AeronContender.Medium.UDP));
        ALL.put("grpc", grpc(Transport.SHADED, Kind.UNARY));
        ALL.put("grpc-uds", grpc(Transport.UNIX, Kind.UNARY));
        ALL.put("grpc-nio", grpc(Transport.NIO, Kind.UNARY));
        ALL.put("grpc-verbena", grpc(Transport.VERBENA, Kind.UNARY));
        ALL.put("grpc-native", grpc(Transport.NATIVE, Kind.UNARY));
        ALL.put("grpc-in-process", grpc(Transport.IN_PROCESS, Kind.UNARY));
        ALL.put("grpc-nio-stream", grpc(Transport.NIO, Kind.STREAM));
        ALL.put("grpc-verbena-stream", grpc(Transport.VERBENA, Kind.STREAM));
        ALL.put("grpc-native-stream", grpc(Transport.NATIVE, Kind.STREAM));
        ALL.put("grpc-nio-download", grpc(Transport.NIO, Kind.DOWNLOAD));
        ALL.put("grpc-verbena-download", grpc(Transport.VERBENA, Kind.DOWNLOAD));
        ALL.put("grpc-native-download", grpc(Transport.NATIVE, Kind.DOWNLOAD));
        ALL.put("vertx-nio", () -> new VertxContender(false));
        ALL.put("vertx-verbena", () -> new VertxContender(true));
        ALL.put("reactor-nio", () -> new ReactorContender(false));
        ALL.put("reactor-verbena", () -> new ReactorContender(true));
        ALL.put("rsocket-nio", () -> new RSocketContender(false));
        ALL.put("rsocket-verbena", () -> new RSocketContender(true));
        ALL.put("flight-nio", () -> new FlightContender(false));
        ALL.put("flight-verbena", () -> new FlightContender(true));
    }

    private static Supplier<Contender> grpc(Transport transport, Kind kind) {
        return () -> new GrpcContender(transport, kind);
    }

    static Contender named(String name) {
        Supplier<Contender> known = ALL.get(name);
        if (known != null) {
            return known.get();
        }
        try {
            return Class.forName(name)
                    .asSubclass(Contender.class)
                    .getDeclaredConstructor()
                    .newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException("no contender " + name + "; there are " + ALL.keySet(), e);
        }
    }
}
