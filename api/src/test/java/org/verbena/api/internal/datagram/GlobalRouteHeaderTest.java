package org.verbena.api.internal.datagram;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.verbena.transport.DatagramPeer;

class GlobalRouteHeaderTest {
    private static final byte[] SOURCE = {10, 77, 0, 1};
    private static final byte[] GROUP = {(byte) 239, 1, 2, 3};
    private final GlobalRouteHeader header = new GlobalRouteHeader();

    private static ByteBuf ipv4(int firstByte, boolean withChecksum) {
        ByteBuf buffer = Unpooled.buffer(GlobalRouteHeader.BYTES).writeZero(GlobalRouteHeader.BYTES);
        buffer.setByte(0, firstByte);
        buffer.setByte(20, 0x45);
        buffer.setShort(22, 1084);
        buffer.setByte(28, 64);
        buffer.setByte(29, 17);
        buffer.setBytes(32, SOURCE);
        buffer.setBytes(36, GROUP);
        if (withChecksum) {
            int sum = 0;
            for (int i = 20; i < 40; i += 2) {
                sum += buffer.getUnsignedShort(i);
            }
            sum = (sum & 0xffff) + (sum >>> 16);
            buffer.setShort(30, ~((sum & 0xffff) + (sum >>> 16)));
        }
        return buffer;
    }

    private static DatagramPeer peer(long high, long low) {
        return new DatagramPeer(high, low, 0, 0, 0);
    }

    private void assertIsIpv4() throws UnknownHostException {
        assertThat(peer(header.sourceHigh(), header.sourceLow()).address()).isEqualTo(InetAddress.getByAddress(SOURCE));
        assertThat(peer(header.destinationHigh(), header.destinationLow()).address())
                .isEqualTo(InetAddress.getByAddress(GROUP));
    }

    @Test
    void readsIpv4WithAndWithoutAChecksum() throws UnknownHostException {
        assertThat(header.read(ipv4(0, true))).isTrue();
        assertIsIpv4();
        assertThat(header.read(ipv4(0, false))).isTrue();
        assertIsIpv4();
    }

    @Test
    void readsIpv4BehindBytesThatLookLikeIpv6() throws UnknownHostException {
        assertThat(header.read(ipv4(0x60, true))).isTrue();
        assertIsIpv4();
    }

    @Test
    void readsIpv6WhoseAddressLooksLikeIpv4() throws UnknownHostException {
        ByteBuf buffer = ipv4(0x60, false); // its checksum is wrong
        InetAddress source = InetAddress.getByName("fd77::1");
        buffer.setBytes(8, source.getAddress());
        buffer.setByte(20, 0x45);
        assertThat(header.read(buffer)).isTrue();
        assertThat(header.sourceHigh()).isEqualTo(0xfd77_0000_0000_0000L);
    }

    @Test
    void readsIpv6() throws UnknownHostException {
        ByteBuf buffer = Unpooled.buffer(GlobalRouteHeader.BYTES).writeZero(GlobalRouteHeader.BYTES);
        InetAddress source = InetAddress.getByName("fd77::1");
        InetAddress destination = InetAddress.getByName("ff0e::1:2");
        buffer.setByte(0, 0x6f);
        buffer.setBytes(8, source.getAddress());
        buffer.setBytes(24, destination.getAddress());
        assertThat(header.read(buffer)).isTrue();
        assertThat(peer(header.sourceHigh(), header.sourceLow()).address()).isEqualTo(source);
        assertThat(peer(header.destinationHigh(), header.destinationLow()).address())
                .isEqualTo(destination);
    }

    @Test
    void refusesWhatIsNeither() {
        assertThat(header.read(Unpooled.wrappedBuffer(new byte[GlobalRouteHeader.BYTES])))
                .isFalse();
    }

    @Test
    void survivesAnyBytes() {
        long seed = System.nanoTime();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        byte[] bytes = new byte[GlobalRouteHeader.BYTES];
        for (int i = 0; i < 10_000; i++) {
            random.nextBytes(bytes);
            boolean isIp = header.read(Unpooled.wrappedBuffer(bytes));
            boolean looksLikeOne = bytes[0] >> 4 == 6 || bytes[20] == 0x45;
            assertThat(isIp).isEqualTo(looksLikeOne);
        }
    }
}
