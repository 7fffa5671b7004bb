package org.verbena.jgroups;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import org.jgroups.BytesMessage;
import org.jgroups.JChannel;
import org.jgroups.annotations.Property;
import org.jgroups.protocols.TCP;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.api.RdmaChannelOption;
import org.verbena.transport.PreSharedKeys;
import org.verbena.transport.spi.Patience;

/** Members that prove a key, and members on different providers. */
@Timeout(120)
class MemberOptionsTest {
    private static final byte[] HELLO = {1, 2, 3};

    private final List<Member> open = new ArrayList<>();

    private Member join(Member.Place place, int number, Consumer<VERBENA> options) throws Exception {
        Member member = Member.join(place, number, options);
        open.add(member);
        return member;
    }

    @AfterEach
    void closeAll() {
        open.reversed().forEach(Member::close);
    }

    private static void tellAll(Member from, Member... to) throws Exception {
        from.channel().send(new BytesMessage(null, HELLO));
        for (Member member : to) {
            assertThat(member.take().<byte[]>getPayload()).isEqualTo(HELLO);
        }
    }

    @Test
    void onlyMembersWithTheKeyFindEachOther() throws Exception {
        Member.Place place = Member.Place.of("soft", "127.0.0.1", 3).withJoinMillis(1_000);
        Consumer<VERBENA> keyed = transport -> transport.option(
                RdmaChannelOption.PRE_SHARED_KEYS,
                PreSharedKeys.of("members", new byte[PreSharedKeys.MIN_SECRET_BYTES]));
        Member first = join(place, 0, keyed);
        Member second = join(place, 1, keyed);
        Member.awaitView(first, second);
        Member stranger = join(place, 2, transport -> {});
        Member.awaitView(stranger);
        tellAll(second, first, second);
        Member.awaitView(first, second);
        assertThat(stranger.hasMessages()).isFalse();
    }

    /** What is time enough for a peer's kernel is not for its process, which may pause. */
    @Test
    void aMemberThatPausesIsJoined() throws Exception {
        Member.Place place = Member.Place.of("soft", "127.0.0.1", 2);
        Member first = join(place, 0, transport -> {});
        Member second = join(place, 1, transport -> {
            transport.setPeerAddrReadTimeout(1).setSockConnTimeout(1);
            // As a garbage collection would, while the other connects.
            CountDownLatch over = new CountDownLatch(1);
            first.transport()
                    .started()
                    .loops
                    .forEach(loop ->
                            loop.execute(() -> Patience.until("the pause is over", () -> over.getCount() == 0)));
            CompletableFuture.delayedExecutor(1, TimeUnit.SECONDS).execute(over::countDown);
        });
        assertThat(second.views().getFirst().size())
                .as("members in its first view")
                .isEqualTo(2);
        Member.awaitView(first, second);
    }

    @Test
    void takesTheConfigurationThatJgroupsShipsForTcp() throws Exception {
        String transport = resource("tcp-default.xml");
        String tcp = transport.substring(transport.indexOf("<TCP"), transport.indexOf("/>") + 2);
        String xml = resource("tcp.xml")
                .replaceFirst(
                        "<include [^>]*/>",
                        Matcher.quoteReplacement(tcp.replace("<TCP", "<" + VERBENA.class.getName())));
        assertThat(xml).contains(VERBENA.class.getName(), "buffered_input_stream_size");
        try (JChannel channel = new JChannel(new ByteArrayInputStream(xml.getBytes(StandardCharsets.UTF_8)))) {
            assertThat(channel.getProtocolStack().getTransport()).isInstanceOf(VERBENA.class);
        }
    }

    /** A newer JGroups may have more. */
    @Test
    void knowsAllAttributesOfTcp() {
        assertThat(attributes(VERBENA.class)).containsAll(attributes(TCP.class));
    }

    private static Set<String> attributes(Class<?> protocol) {
        Set<String> names = new HashSet<>();
        for (Class<?> type = protocol; type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                Property property = field.getAnnotation(Property.class);
                if (property != null) {
                    names.add(property.name().isEmpty() ? field.getName() : property.name());
                }
            }
        }
        return names;
    }

    private static String resource(String name) throws IOException {
        try (InputStream in = JChannel.class.getClassLoader().getResourceAsStream(name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    /** Two take shared memory, and the third, which has none, the software provider. */
    @Test
    void membersOnALadderMeetWhatEachOtherHas() throws Exception {
        Member.Place ladder = Member.Place.of("ladder", "127.0.0.1", 3);
        Member first = join(ladder, 0, transport -> {});
        Member second = join(ladder, 1, transport -> {});
        Member third = join(ladder.withProvider("soft"), 2, transport -> {});
        Member.awaitView(first, second, third);
        tellAll(first, first, second, third);
        tellAll(third, first, second, third);
    }
}
