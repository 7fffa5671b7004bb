package org.verbena.flight;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Server;
import io.grpc.ServerBuilder;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.arrow.flight.AsyncPutListener;
import org.apache.arrow.flight.FlightClient;
import org.apache.arrow.flight.FlightDescriptor;
import org.apache.arrow.flight.FlightGrpcUtils;
import org.apache.arrow.flight.FlightStream;
import org.apache.arrow.flight.NoOpFlightProducer;
import org.apache.arrow.flight.PutResult;
import org.apache.arrow.flight.Ticket;
import org.apache.arrow.flight.auth.ServerAuthHandler;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.Schema;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.grpc.VerbenaGrpc;
import org.verbena.transport.spi.Patience;

/**
 * Arrow Flight over the adapter: every value of every row is checked, each way, and all of Arrow's memory comes back. A
 * subclass names provider and address.
 */
@Timeout(240)
public abstract class FlightSuite {
    private static final Schema SCHEMA = new Schema(List.of(
            Field.notNullable("id", new ArrowType.Int(64, true)),
            Field.nullable("value", new ArrowType.FloatingPoint(FloatingPointPrecision.DOUBLE)),
            Field.nullable("name", ArrowType.Utf8.INSTANCE),
            Field.nullable("blob", ArrowType.Binary.INSTANCE)));

    private static final int ROWS_PER_BATCH = 5_000;
    private static final int BLOB_BYTES = 200;

    private final AtomicLong rowsPut = new AtomicLong();
    private final ExecutorService executor = Executors.newCachedThreadPool();
    private final BufferAllocator memory = new RootAllocator();
    private RdmaEventLoopGroup group;
    private Server server;
    private ManagedChannel channel;
    private FlightClient client;

    /** Which provider. */
    protected abstract String provider();

    /** Where the server listens: an address, not a name. */
    protected String host() {
        return "127.0.0.1";
    }

    /** Serves gRPC. */
    protected ServerBuilder<?> newServer(InetSocketAddress address, RdmaEventLoopGroup loops) {
        return VerbenaGrpc.server(address, loops);
    }

    /** Connects to the server. */
    protected ManagedChannelBuilder<?> newChannel(int port, RdmaEventLoopGroup loops) {
        return VerbenaGrpc.channel(host(), port, loops);
    }

    /** How many batches of rows go each way. */
    protected int batches() {
        return 20;
    }

    @BeforeEach
    @SuppressWarnings("deprecation") // the only way to create a service has a parameter of a deprecated type
    void connect() throws Exception {
        group = new RdmaEventLoopGroup(provider(), 2);
        server = newServer(new InetSocketAddress(host(), 0), group)
                .addService(
                        FlightGrpcUtils.createFlightService(memory, new Producer(), ServerAuthHandler.NO_OP, executor))
                .maxInboundMessageSize(Integer.MAX_VALUE)
                .build()
                .start();
        channel = newChannel(server.getPort(), group)
                .usePlaintext()
                .maxInboundMessageSize(Integer.MAX_VALUE)
                .build();
        client = FlightGrpcUtils.createFlightClient(memory, channel);
    }

    @AfterEach
    void close() throws Exception {
        client.close();
        channel.shutdownNow().awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        server.shutdownNow().awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS);
        executor.shutdown();
        assertThat(executor.awaitTermination(Patience.LIMIT.toSeconds(), TimeUnit.SECONDS))
                .isTrue();
        group.close();
        assertThat(memory.getAllocatedMemory()).isZero();
        memory.close();
    }

    @Test
    @SuppressWarnings("try") // nothing interrupts a test
    void streamsRowsToAClient() throws Exception {
        try (FlightStream stream = client.getStream(new Ticket("rows".getBytes(StandardCharsets.UTF_8)))) {
            assertThat(stream.getSchema()).isEqualTo(SCHEMA);
            assertThat(check(stream)).isEqualTo((long) batches() * ROWS_PER_BATCH);
        }
    }

    @Test
    void takesRowsFromAClient() throws Exception {
        AsyncPutListener listener = new AsyncPutListener();
        try (VectorSchemaRoot rows = VectorSchemaRoot.create(SCHEMA, memory)) {
            FlightClient.ClientStreamListener upload = client.startPut(FlightDescriptor.path("rows"), rows, listener);
            for (int batch = 0; batch < batches(); batch++) {
                // What was put before the call began is read when it begins: until then the rows may not change.
                Patience.until("the call takes another batch", upload::isReady);
                fill(rows, batch);
                upload.putNext();
            }
            upload.completed();
            upload.getResult();
        }
        assertThat(rowsPut.get()).isEqualTo((long) batches() * ROWS_PER_BATCH);
    }

    @Test
    @SuppressWarnings("try") // nothing interrupts a test
    void exchangesRows() throws Exception {
        try (VectorSchemaRoot rows = VectorSchemaRoot.create(SCHEMA, memory);
                FlightClient.ExchangeReaderWriter exchange = client.doExchange(FlightDescriptor.path("echo"))) {
            exchange.getWriter().start(rows);
            FlightStream back = exchange.getReader();
            for (int batch = 0; batch < batches(); batch++) {
                fill(rows, batch);
                exchange.getWriter().putNext();
                assertThat(back.next()).isTrue();
                check(back.getRoot(), batch);
            }
            exchange.getWriter().completed();
            assertThat(back.next()).isFalse();
        }
    }

    private static void fill(VectorSchemaRoot root, int batch) {
        BigIntVector ids = (BigIntVector) root.getVector("id");
        Float8Vector values = (Float8Vector) root.getVector("value");
        VarCharVector names = (VarCharVector) root.getVector("name");
        VarBinaryVector blobs = (VarBinaryVector) root.getVector("blob");
        root.clear();
        for (int row = 0; row < ROWS_PER_BATCH; row++) {
            long id = (long) batch * ROWS_PER_BATCH + row;
            ids.setSafe(row, id);
            if (id % 7 == 0) {
                values.setNull(row);
            } else {
                values.setSafe(row, value(id));
            }
            names.setSafe(row, name(id));
            blobs.setSafe(row, blob(id));
        }
        root.setRowCount(ROWS_PER_BATCH);
    }

    private static double value(long id) {
        return id / 3.0;
    }

    private static byte[] name(long id) {
        return ("row " + id).getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] blob(long id) {
        byte[] bytes = new byte[BLOB_BYTES];
        for (int i = 0; i < BLOB_BYTES; i++) {
            bytes[i] = (byte) (id * 31 + i);
        }
        return bytes;
    }

    private static long check(FlightStream stream) {
        long rows = 0;
        for (int batch = 0; stream.next(); batch++) {
            rows += check(stream.getRoot(), batch);
        }
        return rows;
    }

    private static int check(VectorSchemaRoot root, int batch) {
        assertThat(root.getRowCount()).isEqualTo(ROWS_PER_BATCH);
        BigIntVector ids = (BigIntVector) root.getVector("id");
        Float8Vector values = (Float8Vector) root.getVector("value");
        VarCharVector names = (VarCharVector) root.getVector("name");
        VarBinaryVector blobs = (VarBinaryVector) root.getVector("blob");
        for (int row = 0; row < ROWS_PER_BATCH; row++) {
            long id = (long) batch * ROWS_PER_BATCH + row;
            assertThat(ids.get(row)).isEqualTo(id);
            assertThat(values.getObject(row)).isEqualTo(id % 7 == 0 ? null : Double.valueOf(value(id)));
            assertThat(names.get(row)).isEqualTo(name(id));
            assertThat(blobs.get(row)).isEqualTo(blob(id));
        }
        return ROWS_PER_BATCH;
    }

    /** Gives rows, takes rows, and gives back what it took. */
    private final class Producer extends NoOpFlightProducer {
        @Override
        public void getStream(CallContext context, Ticket ticket, ServerStreamListener listener) {
            try (VectorSchemaRoot root = VectorSchemaRoot.create(SCHEMA, memory)) {
                listener.start(root);
                for (int batch = 0; batch < batches(); batch++) {
                    fill(root, batch);
                    listener.putNext();
                }
                listener.completed();
            }
        }

        @Override
        public Runnable acceptPut(CallContext context, FlightStream stream, StreamListener<PutResult> acks) {
            return () -> {
                rowsPut.addAndGet(check(stream));
                acks.onCompleted();
            };
        }

        @Override
        public void doExchange(CallContext context, FlightStream reader, ServerStreamListener writer) {
            int batch = 0;
            while (reader.next()) {
                if (batch == 0) {
                    writer.start(reader.getRoot());
                }
                check(reader.getRoot(), batch++);
                writer.putNext();
            }
            writer.completed();
        }
    }
}
