package org.verbena.bench.peers.contenders;

import io.grpc.ManagedChannel;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.NettyServerBuilder;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.arrow.flight.FlightClient;
import org.apache.arrow.flight.FlightDescriptor;
import org.apache.arrow.flight.FlightGrpcUtils;
import org.apache.arrow.flight.FlightStream;
import org.apache.arrow.flight.NoOpFlightProducer;
import org.apache.arrow.flight.auth.ServerAuthHandler;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.Schema;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.bench.peers.Contender;
import org.verbena.bench.peers.Load;
import org.verbena.bench.peers.Place;
import org.verbena.grpc.VerbenaGrpc;

/**
 * Arrow Flight's exchange: a message is a batch of rows with a 64-bit integer each, and the server sends back each
 * batch. One event loop a process, and a thread that blocks, as Flight's streams are read.
 */
public final class FlightContender implements Contender {
    private static final Schema SCHEMA =
            new Schema(List.of(Field.notNullable("number", new ArrowType.Int(Long.SIZE, true))));

    private final boolean verbena;

    /**
     * Makes one.
     *
     * @param verbena whether it runs over Verbena, or on Netty's NIO sockets
     */
    public FlightContender(boolean verbena) {
        this.verbena = verbena;
    }

    @Override
    public List<String> jvmFlags() {
        return Nettys.JVM_FLAGS;
    }

    private static EventLoopGroup nio() {
        return new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
    }

    private NettyServerBuilder serverBuilder(InetSocketAddress address) {
        if (verbena) {
            return VerbenaGrpc.server(address, new RdmaEventLoopGroup(Place.provider(), 1));
        }
        EventLoopGroup group = nio();
        return NettyServerBuilder.forAddress(address)
                .channelType(NioServerSocketChannel.class)
                .bossEventLoopGroup(group)
                .workerEventLoopGroup(group);
    }

    private NettyChannelBuilder channelBuilder(InetSocketAddress address) {
        NettyChannelBuilder builder = NettyChannelBuilder.forAddress(address);
        return verbena
                ? VerbenaGrpc.overRdma(builder, new RdmaEventLoopGroup(Place.provider(), 1))
                : builder.channelType(NioSocketChannel.class).eventLoopGroup(nio());
    }

    @Override
    @SuppressWarnings("deprecation") // the only way to create a service has a parameter of a deprecated type
    public Server startServer(Path scratch) throws IOException {
        ExecutorService executor = Executors.newCachedThreadPool();
        io.grpc.Server server = serverBuilder(Place.address(0))
                .addService(FlightGrpcUtils.createFlightService(
                        new RootAllocator(), new Echo(), ServerAuthHandler.NO_OP, executor))
                .maxInboundMessageSize(Integer.MAX_VALUE)
                .build()
                .start();
        return new Server() {
            @Override
            public String address() {
                return Integer.toString(server.getPort());
            }

            @Override
            public void close() {
                server.shutdownNow();
                executor.shutdown();
            }
        };
    }

    private static final class Echo extends NoOpFlightProducer {
        @Override
        public void doExchange(CallContext context, FlightStream reader, ServerStreamListener writer) {
            boolean started = false;
            while (reader.next()) {
                if (!started) {
                    writer.start(reader.getRoot());
                    started = true;
                }
                writer.putNext();
            }
            writer.completed();
        }
    }

    @Override
    public Client connect(String address) {
        BufferAllocator memory = new RootAllocator();
        ManagedChannel channel = channelBuilder(Place.address(Integer.parseInt(address)))
                .usePlaintext()
                .maxInboundMessageSize(Integer.MAX_VALUE)
                .build();
        FlightClient client = FlightGrpcUtils.createFlightClient(memory, channel);
        return new Client() {
            @Override
            public void run(Load load) throws Exception {
                try (VectorSchemaRoot rows = VectorSchemaRoot.create(SCHEMA, memory);
                        FlightClient.ExchangeReaderWriter exchange = client.doExchange(FlightDescriptor.path("echo"))) {
                    exchange.getWriter().start(rows);
                    exchange(load, rows, exchange);
                    exchange.getWriter().completed();
                    while (exchange.getReader().next()) {
                        throw new IOException("a batch more came than was sent");
                    }
                }
            }

            @Override
            public void close() throws Exception {
                client.close();
                channel.shutdownNow();
            }
        };
    }

    private static void exchange(Load load, VectorSchemaRoot rows, FlightClient.ExchangeReaderWriter exchange)
            throws IOException {
        BigIntVector sent = (BigIntVector) rows.getVector(0);
        int count = load.size / Long.BYTES;
        sent.allocateNew(count);
        for (int row = 0; row < count; row++) {
            sent.set(row, 0); // so that no row is null
        }
        rows.setRowCount(count);
        ArrowBuf values = sent.getDataBuffer();
        FlightStream back = exchange.getReader();
        while (!load.finished()) {
            for (long sequence; (sequence = load.next()) >= 0; ) {
                // What was put before the call began is read when it begins: until then the rows may not change.
                while (!exchange.getWriter().isReady()) {
                    Thread.onSpinWait();
                }
                values.setBytes(0, load.payload, 0, load.size);
                values.setLong(0, sequence);
                exchange.getWriter().putNext();
            }
            if (load.outstanding() > 0) {
                if (!back.next()) {
                    throw new EOFException("the exchange has ended");
                }
                BigIntVector echo = (BigIntVector) back.getRoot().getVector(0);
                int length = back.getRoot().getRowCount() * Long.BYTES;
                load.echoed(echo.get(0), length, echo.getDataBuffer().getByte(length - 1L));
            }
        }
    }
}
