package org.verbena.api.testsuite;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.testsuite.transport.TestsuitePermutation;
import io.netty.testsuite.transport.TestsuitePermutation.BootstrapComboFactory;
import io.netty.testsuite.transport.TestsuitePermutation.BootstrapFactory;
import io.netty.testsuite.transport.socket.AbstractSocketShutdownOutputByPeerTest;
import io.netty.testsuite.transport.socket.CompositeBufferGatheringWriteTest;
import io.netty.testsuite.transport.socket.DatagramConnectNotExistsTest;
import io.netty.testsuite.transport.socket.DatagramConnectedWriteExceptionTest;
import io.netty.testsuite.transport.socket.DatagramMulticastIPv6Test;
import io.netty.testsuite.transport.socket.DatagramMulticastTest;
import io.netty.testsuite.transport.socket.DatagramUnicastIPv6MappedTest;
import io.netty.testsuite.transport.socket.DatagramUnicastIPv6Test;
import io.netty.testsuite.transport.socket.DatagramUnicastInetTest;
import io.netty.testsuite.transport.socket.ServerSocketSuspendTest;
import io.netty.testsuite.transport.socket.SocketAddressesTest;
import io.netty.testsuite.transport.socket.SocketAutoReadTest;
import io.netty.testsuite.transport.socket.SocketBufReleaseTest;
import io.netty.testsuite.transport.socket.SocketCancelWriteTest;
import io.netty.testsuite.transport.socket.SocketChannelNotYetConnectedTest;
import io.netty.testsuite.transport.socket.SocketCloseForciblyTest;
import io.netty.testsuite.transport.socket.SocketConditionalWritabilityTest;
import io.netty.testsuite.transport.socket.SocketConnectTest;
import io.netty.testsuite.transport.socket.SocketConnectionAttemptTest;
import io.netty.testsuite.transport.socket.SocketDataReadInitialStateTest;
import io.netty.testsuite.transport.socket.SocketEchoTest;
import io.netty.testsuite.transport.socket.SocketExceptionHandlingTest;
import io.netty.testsuite.transport.socket.SocketFileRegionTest;
import io.netty.testsuite.transport.socket.SocketFixedLengthEchoTest;
import io.netty.testsuite.transport.socket.SocketGatheringWriteTest;
import io.netty.testsuite.transport.socket.SocketHalfClosedTest;
import io.netty.testsuite.transport.socket.SocketMultipleConnectTest;
import io.netty.testsuite.transport.socket.SocketObjectEchoTest;
import io.netty.testsuite.transport.socket.SocketReadPendingTest;
import io.netty.testsuite.transport.socket.SocketRstTest;
import io.netty.testsuite.transport.socket.SocketShutdownOutputByPeerTest;
import io.netty.testsuite.transport.socket.SocketShutdownOutputBySelfTest;
import io.netty.testsuite.transport.socket.SocketSpdyEchoTest;
import io.netty.testsuite.transport.socket.SocketSslClientRenegotiateTest;
import io.netty.testsuite.transport.socket.SocketSslEchoTest;
import io.netty.testsuite.transport.socket.SocketSslGreetingTest;
import io.netty.testsuite.transport.socket.SocketSslLargeCertificateTest;
import io.netty.testsuite.transport.socket.SocketSslSessionReuseTest;
import io.netty.testsuite.transport.socket.SocketStartTlsTest;
import io.netty.testsuite.transport.socket.SocketStringEchoTest;
import io.netty.testsuite.transport.socket.SocketTestPermutation;
import io.netty.testsuite.transport.socket.TrafficShapingHandlerTest;
import io.netty.testsuite.transport.socket.WriteBeforeRegisteredTest;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestInfo;

/**
 * Netty's own tests of socket transports, which its epoll and io_uring transports run as well. A subclass names the
 * transport. docs/netty-testsuite.md has the results. {@code -Dlab=full} runs them with each of Netty's allocators, and
 * the long ones with each variant.
 */
public abstract class NettySuite {
    private static final boolean FULL = "full".equals(System.getProperty("lab"));

    private static final String OPENSSL =
            "it wants OpenSSL, which this build does not have; on NIO it is skipped as well";
    private static final String DATAGRAMS = "there are no datagrams";
    private static final String ONE_BYTE = "it reads one byte at a time by a receive allocator of its own; Verbena"
            + " delivers what has come, in the memory it came in";

    /** The classes of the suite that do not apply, and why. Methods that do not are overridden below. */
    static final Map<Class<?>, String> LEFT_OUT = Map.ofEntries(
            Map.entry(SocketAutoReadTest.class, ONE_BYTE),
            Map.entry(SocketReadPendingTest.class, ONE_BYTE),
            Map.entry(SocketShutdownOutputBySelfTest.class, "its peer is a TCP socket"),
            Map.entry(
                    SocketShutdownOutputByPeerTest.class,
                    "its peer is a TCP socket; its abstract class runs with a channel as the peer"),
            Map.entry(
                    SocketSslLargeCertificateTest.class,
                    "it runs on Netty's NIO sockets, whatever transport is under test"),
            Map.entry(SocketSslClientRenegotiateTest.class, OPENSSL),
            Map.entry(
                    TrafficShapingHandlerTest.class,
                    "it tests a handler, by the clock; epoll and io_uring leave it out as well"),
            Map.entry(ServerSocketSuspendTest.class, "Netty has disabled it"),
            Map.entry(DatagramConnectNotExistsTest.class, DATAGRAMS),
            Map.entry(DatagramConnectedWriteExceptionTest.class, DATAGRAMS),
            Map.entry(DatagramMulticastIPv6Test.class, DATAGRAMS),
            Map.entry(DatagramMulticastTest.class, DATAGRAMS),
            Map.entry(DatagramUnicastIPv6MappedTest.class, DATAGRAMS),
            Map.entry(DatagramUnicastIPv6Test.class, DATAGRAMS),
            Map.entry(DatagramUnicastInetTest.class, DATAGRAMS));

    /** What is under test. */
    protected abstract SocketTestPermutation permutation();

    private List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> pairs() {
        return permutation().socket();
    }

    private List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> firstPair() {
        return FULL ? pairs() : pairs().subList(0, 1);
    }

    private static List<ByteBufAllocator> allocators() {
        return FULL ? TestsuitePermutation.allocator() : List.of(PooledByteBufAllocator.DEFAULT);
    }

    @Nested
    class BufRelease extends SocketBufReleaseTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class CancelWrite extends SocketCancelWriteTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class CloseForcibly extends SocketCloseForciblyTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class CompositeBufferGatheringWrite extends CompositeBufferGatheringWriteTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class ConditionalWritability extends SocketConditionalWritabilityTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return firstPair();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class Connect extends SocketConnectTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class DataReadInitialState extends SocketDataReadInitialStateTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }

        /** Left out. It connects before the server accepts; an RDMA connection is up when it is accepted. */
        @Override
        public void testAutoReadOffNoDataReadUntilReadCalled(TestInfo info) {}
    }

    @Nested
    class Echo extends SocketEchoTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class ExceptionHandling extends SocketExceptionHandlingTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class FileRegion extends SocketFileRegionTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class FixedLengthEcho extends SocketFixedLengthEchoTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class GatheringWrite extends SocketGatheringWriteTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return firstPair();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class HalfClosed extends SocketHalfClosedTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }

        /** Left out. It expects the peer's end to be reported without a read; here a read reports it, as on NIO. */
        @Override
        public void testAllDataReadEventTriggeredAfterHalfClosure(TestInfo info) {}

        /** Left out. A write after a reset shuts down only the output; RDMA ends the connection. */
        @Override
        public void testAutoCloseFalseDoesShutdownOutput(TestInfo info) {}
    }

    @Nested
    class MultipleConnect extends SocketMultipleConnectTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class ObjectEcho extends SocketObjectEchoTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class Rst extends SocketRstTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class SpdyEcho extends SocketSpdyEchoTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    /** With 96 combinations of TLS, which is above the transport: two more classes of TLS run every day. */
    @Nested
    @Tag("full")
    class SslEcho extends SocketSslEchoTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return firstPair();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class SslGreeting extends SocketSslGreetingTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class SslSessionReuse extends SocketSslSessionReuseTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }

        /** Left out. It wants OpenSSL. */
        @Override
        public void testSslSessionTrustManagerResumption(
                SslContextBuilder server, SslContextBuilder client, TestInfo info) {}
    }

    @Nested
    class StartTls extends SocketStartTlsTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class StringEcho extends SocketStringEchoTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class ChannelNotYetConnected extends SocketChannelNotYetConnectedTest {
        @Override
        protected List<BootstrapFactory<Bootstrap>> newFactories() {
            return permutation().clientSocket();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }

        /** Left out. Its peer is an NIO socket. */
        @Override
        public void readMustBePendingUntilChannelIsActive(TestInfo info) {}
    }

    @Nested
    class ConnectionAttempt extends SocketConnectionAttemptTest {
        @Override
        protected List<BootstrapFactory<Bootstrap>> newFactories() {
            return permutation().clientSocket();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }

        /** Left out. It wants a network in which nobody answers at 198.51.100.254. */
        @Override
        public void testConnectCancellation(TestInfo info) {}
    }

    @Nested
    class WriteBeforeRegistered extends WriteBeforeRegisteredTest {
        @Override
        protected List<BootstrapFactory<Bootstrap>> newFactories() {
            return permutation().clientSocket();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }
    }

    @Nested
    class Addresses extends SocketAddressesTest {
        @Override
        protected List<BootstrapComboFactory<ServerBootstrap, Bootstrap>> newFactories() {
            return pairs();
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }

        @Override
        protected void assertAddress(SocketAddress address) {
            assertThat(((InetSocketAddress) address).getPort()).isPositive();
            assertThat(((InetSocketAddress) address).getAddress().isAnyLocalAddress())
                    .isFalse();
        }
    }

    /** The peer is a channel of the same kind. */
    @Nested
    class ShutdownOutputByPeer extends AbstractSocketShutdownOutputByPeerTest<Channel> {
        @Override
        protected List<BootstrapFactory<ServerBootstrap>> newFactories() {
            return permutation().serverSocket().subList(0, 1);
        }

        @Override
        protected List<ByteBufAllocator> newAllocators() {
            return allocators();
        }

        @Override
        protected Channel newSocket() {
            Bootstrap client = permutation().clientSocket().getFirst().newInstance();
            return client.handler(new ChannelInboundHandlerAdapter())
                    .register()
                    .syncUninterruptibly()
                    .channel();
        }

        @Override
        protected void connect(Channel socket, SocketAddress address) {
            socket.connect(address).syncUninterruptibly();
        }

        @Override
        protected void write(Channel socket, int data) {
            socket.writeAndFlush(socket.alloc().buffer(1).writeByte(data)).syncUninterruptibly();
        }

        @Override
        protected void shutdownOutput(Channel socket) {
            ((SocketChannel) socket).shutdownOutput().syncUninterruptibly();
        }

        @Override
        protected void close(Channel socket) {
            socket.close().syncUninterruptibly();
        }
    }
}
