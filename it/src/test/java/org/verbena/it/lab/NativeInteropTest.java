package org.verbena.it.lab;

import io.grpc.ManagedChannelBuilder;
import io.grpc.Server;
import io.grpc.ServerBuilder;
import io.grpc.ServerInterceptors;
import io.grpc.netty.NettyChannelBuilder;
import io.grpc.testing.integration.TestServiceImpl;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.Result;
import org.junit.runner.RunWith;
import org.junit.runners.JUnit4;
import org.verbena.api.RdmaChannelOption;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.grpc.NativeChannelBuilder;
import org.verbena.grpc.NativeInteropSuite;
import org.verbena.grpc.VerbenaGrpc;

/**
 * gRPC's own interoperability suite on the native transport, on verbs: a part of it on soft RoCE, while clients of
 * HTTP/2 run the same against the same port, one over verbs and gRPC's usual one over TCP; and all of it on each
 * device. It uses nothing of a device that channels on soft RoCE do not have every day, and runs on soft.
 */
@Tag("lab")
@Tag("lab-full")
@Timeout(400)
class NativeInteropTest {
    private static final int MIN_TESTS = 30;
    private static final int MAX_MESSAGE_BYTES = 16 << 20;
    private static final int OPERATION_MILLIS = 60_000;

    /** Of the server for all kinds of clients. */
    private static volatile int port;

    private static RdmaEventLoopGroup verbs;

    @Test
    void nativeClientsAndThoseOfHttp2AreServedAtOnce() throws Exception {
        List<Class<?>> suites = List.of(NativeClient.class, Http2Client.class, UsualClient.class);
        try (ScheduledExecutorService service = Executors.newScheduledThreadPool(2);
                RdmaEventLoopGroup all = new RdmaEventLoopGroup("all", 2);
                RdmaEventLoopGroup clients = new RdmaEventLoopGroup("verbs", 2);
                ExecutorService threads = Executors.newFixedThreadPool(suites.size())) {
            verbs = clients;
            Server server = VerbenaGrpc.nativeServer(new InetSocketAddress(LabDevice.RXE.address(), 0), all)
                    .withOption(RdmaChannelOption.PLAIN_TCP, true)
                    .maxInboundMessageSize(MAX_MESSAGE_BYTES)
                    .addService(
                            ServerInterceptors.intercept(new TestServiceImpl(service), TestServiceImpl.interceptors()))
                    .build()
                    .start();
            try {
                port = server.getPort();
                List<Future<Result>> running = new ArrayList<>();
                for (Class<?> suite : suites) {
                    running.add(threads.submit(() -> new JUnitCore()
                            .run(Request.aClass(suite).filterWith(new GrpcRungsTest.Named(GrpcRungsTest.AT_ONCE)))));
                }
                for (int i = 0; i < suites.size(); i++) {
                    GrpcRungsTest.assertPassed(suites.get(i), running.get(i).get(), GrpcRungsTest.AT_ONCE.size());
                }
            } finally {
                server.shutdownNow().awaitTermination();
            }
        }
    }

    @Test
    void passesOnRxe() {
        GrpcRungsTest.assertPassed(OnRxe.class, new JUnitCore().run(OnRxe.class), MIN_TESTS);
    }

    @Test
    void passesOnSiw() {
        GrpcRungsTest.assertPassed(OnSiw.class, new JUnitCore().run(OnSiw.class), MIN_TESTS);
    }

    /** All of it, client and server native, over soft RoCE. */
    @RunWith(JUnit4.class)
    public static class OnRxe extends NativeInteropSuite {
        @Override
        protected String provider() {
            return "verbs";
        }

        @Override
        protected String host() {
            return LabDevice.RXE.address();
        }

        /** For the host's runs: these checks take for granted that a call starts within its second. */
        @Override
        protected boolean metricsExpected() {
            return false;
        }
    }

    /** The same over soft iWARP. */
    @RunWith(JUnit4.class)
    public static class OnSiw extends OnRxe {
        @Override
        protected String host() {
            return LabDevice.SIW.address();
        }
    }

    /** A native client of the server for all. */
    @RunWith(JUnit4.class)
    public static class NativeClient extends OnRxe {
        @Override
        protected ServerBuilder<?> getServerBuilder() {
            return null; // it serves already
        }

        @Override
        protected ManagedChannelBuilder<?> createChannelBuilder() {
            NativeChannelBuilder builder = VerbenaGrpc.nativeChannel(host(), port, verbs);
            return builder.usePlaintext().http2Fallback(false).maxInboundMessageSize(MAX_MESSAGE_BYTES);
        }

        @Override
        protected int operationTimeoutMillis() {
            return OPERATION_MILLIS;
        }
    }

    /** A client of HTTP/2 over verbs. */
    @RunWith(JUnit4.class)
    public static class Http2Client extends GrpcRungsTest.Suite {
        @Override
        protected NettyChannelBuilder newBuilder() {
            return VerbenaGrpc.channel(LabDevice.RXE.address(), port, verbs);
        }
    }

    /** gRPC's own client, without Verbena. */
    @RunWith(JUnit4.class)
    public static class UsualClient extends GrpcRungsTest.Suite {
        @Override
        protected NettyChannelBuilder newBuilder() {
            return NettyChannelBuilder.forAddress(LabDevice.RXE.address(), port);
        }
    }
}
