package org.verbena.jgroups;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.bootstrap.Bootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.SplittableRandom;
import org.jgroups.BytesMessage;
import org.jgroups.Version;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaChannel;
import org.verbena.api.RdmaEventLoopGroup;
import org.verbena.transport.Framing;
import org.verbena.transport.spi.Patience;
import org.verbena.transport.spi.Strangers;

/** Members whose port others reach than members: they go on with each other, and are done with those. */
@Timeout(180)
class StrangersTest {
    private static final byte[] HELLO = {1, 2, 3};

    /** As JGroups' wire has it. */
    private static final int LIST = 1;

    private final Member.Place place = Member.Place.of("soft", "127.0.0.1", 2);

    StrangersTest() throws Exception {}

    private InetSocketAddress first() {
        return new InetSocketAddress(
                InetAddress.getLoopbackAddress(), place.ports().getFirst());
    }

    private static void talk(Member first, Member second) throws Exception {
        for (Member from : List.of(first, second)) {
            from.channel().send(new BytesMessage(null, HELLO));
            assertThat(first.take().<byte[]>getPayload()).isEqualTo(HELLO);
            assertThat(second.take().<byte[]>getPayload()).isEqualTo(HELLO);
        }
    }

    @Test
    void whoSpeaksNoProtocolIsEndedInTime() throws Exception {
        try (Member first = Member.join(place, 0);
                Member second = Member.join(place, 1);
                Strangers strangers = new Strangers(first())) {
            Member.awaitView(first, second);
            strangers.connectSilently(100, Framing.MESSAGE);
            strangers.sendNoise(10);
            talk(first, second);
            strangers.awaitEnd();
            talk(first, second);
        }
    }

    /** Who says that it is a member is believed; JGroups cannot read the rest. */
    @Test
    void messagesThatCannotBeReadHarmNobodyAndAreNotAllLogged() throws Exception {
        try (Member first = Member.join(place, 0);
                Member second = Member.join(place, 1);
                Strangers strangers = new Strangers(first());
                RdmaEventLoopGroup loops = new RdmaEventLoopGroup("soft", 1)) {
            Member.awaitView(first, second);
            Channel stranger = new Bootstrap()
                    .group(loops)
                    .channel(RdmaChannel.class)
                    .handler(new ChannelInitializer<>() {
                        @Override
                        protected void initChannel(Channel channel) {}
                    })
                    .connect(first())
                    .sync()
                    .channel();
            stranger.writeAndFlush(PeerConnectionsSuite.hello(1));
            SplittableRandom random = new SplittableRandom(59);
            for (int i = 0; i < 50; i++) {
                byte[] noise = new byte[random.nextInt(1, 300)];
                random.nextBytes(noise);
                stranger.writeAndFlush(Unpooled.wrappedBuffer(version(i % 2 * LIST), noise));
            }
            stranger.writeAndFlush(Unpooled.wrappedBuffer(longerThanItIs())).sync();
            talk(first, second);
            stranger.close().sync();
            Patience.until("it has left", () -> first.transport().getOpenConnections() == 1);
            talk(first, second);
            strangers.awaitEnd();
        }
    }

    private static byte[] version(int flags) {
        return ByteBuffer.allocate(3)
                .putShort(Version.version)
                .put((byte) flags)
                .array();
    }

    /** A message of 3 bytes that claims to have 16 MiB, for which JGroups makes an array. */
    private static byte[] longerThanItIs() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        BytesMessage message = new BytesMessage(null, HELLO);
        out.write(version(0));
        out.writeShort(message.getType());
        message.writeTo(out);
        byte[] made = bytes.toByteArray();
        ByteBuffer.wrap(made).putInt(made.length - HELLO.length - Integer.BYTES, 16 << 20);
        return made;
    }
}
