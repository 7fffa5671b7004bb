package org.verbena.jgroups;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import org.jgroups.Address;
import org.jgroups.BytesMessage;
import org.jgroups.Event;
import org.jgroups.JChannel;
import org.jgroups.MergeView;
import org.jgroups.Message;
import org.jgroups.View;
import org.jgroups.ViewId;
import org.jgroups.blocks.RequestOptions;
import org.jgroups.blocks.RpcDispatcher;
import org.jgroups.protocols.pbcast.GMS;
import org.jgroups.stack.IpAddress;
import org.jgroups.util.Util;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.spi.Patience;

/** Three members in this JVM. */
@Timeout(120)
public abstract class JgroupsSuite {
    private final List<Member> open = new ArrayList<>();

    /** What connects the members. */
    protected abstract String provider();

    /** The address at which they are. */
    protected String host() {
        return "127.0.0.1";
    }

    private Member join(Member.Place place, int number) throws Exception {
        Member member = Member.join(place, number);
        open.add(member);
        return member;
    }

    private Member[] cluster(Member.Place place) throws Exception {
        Member[] members = new Member[place.ports().size()];
        for (int i = 0; i < members.length; i++) {
            members[i] = join(place, i);
        }
        Member.awaitView(members);
        return members;
    }

    private Member[] cluster(int members) throws Exception {
        return cluster(Member.Place.of(provider(), host(), members));
    }

    private static byte[] content(long seed, int length) {
        byte[] bytes = new byte[length];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    private static void send(Member from, Address to, byte[] content) throws Exception {
        from.channel().send(new BytesMessage(to, content));
    }

    /** Every member gets something from every other. */
    private static void exchange(Member... members) throws Exception {
        for (Member member : members) {
            send(member, null, content(members.length, 100));
        }
        for (Member member : members) {
            List<Address> from = new ArrayList<>();
            while (from.size() < members.length) {
                Message message = member.take();
                assertThat(Arrays.equals(message.getPayload(), content(members.length, 100)))
                        .isTrue();
                from.add(message.getSrc());
            }
            assertThat(from).doesNotHaveDuplicates();
        }
    }

    @AfterEach
    void closeAll() {
        open.reversed().forEach(Member::close);
    }

    @Test
    void messagesToOneAndToAllArriveInOrder() throws Exception {
        Member[] members = cluster(3);
        int count = 200;
        for (int i = 0; i < count; i++) {
            for (Member from : members) {
                send(from, null, content(i, i * 13));
                for (Member to : members) {
                    send(from, to.address(), content(-i - 1, i * 7));
                }
            }
        }
        for (Member member : members) {
            Map<Address, Integer> toAll = new HashMap<>();
            Map<Address, Integer> toOne = new HashMap<>();
            for (int i = 0; i < 2 * count * members.length; i++) {
                Message message = member.take();
                boolean one = message.getDest() != null;
                int number = (one ? toOne : toAll).merge(message.getSrc(), 1, Integer::sum) - 1;
                byte[] expected = one ? content(-number - 1, number * 7) : content(number, number * 13);
                byte[] payload = new byte[message.getLength()];
                System.arraycopy(message.getArray(), message.getOffset(), payload, 0, payload.length);
                assertThat(payload)
                        .as("message %s from %s", number, message.getSrc())
                        .isEqualTo(expected);
            }
            assertThat(toAll).hasSize(3).containsValue(count);
            assertThat(toOne).hasSize(3).containsValue(count);
        }
        for (Member member : members) {
            assertThat(member.transport().getOpenConnections()).isEqualTo(2);
            assertThat(member.transport().getDroppedMessages()).isZero();
        }
    }

    @Test
    void longMessagesArriveWithAndWithoutFragments() throws Exception {
        for (String fragments : List.of(Member.FRAGMENTS, "")) {
            Member[] members = cluster(Member.Place.of(provider(), host(), 3).withMore(fragments));
            for (int length : new int[] {1 << 20, 5_000_001}) {
                send(members[0], null, content(length, length));
                send(members[1], members[2].address(), content(length + 1, length));
                assertThat(members[0].take().<byte[]>getPayload()).isEqualTo(content(length, length));
                assertThat(members[1].take().<byte[]>getPayload()).isEqualTo(content(length, length));
                for (int i = 0; i < 2; i++) {
                    Message message = members[2].take();
                    assertThat(message.<byte[]>getPayload())
                            .isEqualTo(content(message.getDest() == null ? length : length + 1, length));
                }
            }
            closeAll();
            open.clear();
        }
    }

    @Test
    void aMemberClosesAndComesBackAtItsAddress() throws Exception {
        Member.Place place = Member.Place.of(provider(), host(), 3);
        Member[] members = cluster(place);
        members[1].close();
        Member.awaitView(members[0], members[2]);
        exchange(members[0], members[2]);
        assertThat(members[0].transport().numSuspectEvents()).isZero();

        Member back = join(place, 1);
        Member.awaitView(members[0], back, members[2]);
        exchange(members[0], back, members[2]);

        // The coordinator as well.
        members[0].close();
        Member.awaitView(back, members[2]);
        exchange(back, members[2]);
    }

    @Test
    void aLostMemberIsSuspectedAndTheOthersGoOn() throws Exception {
        Member.Place place = Member.Place.of(provider(), host(), 3);
        Member[] members = cluster(place);
        exchange(members);
        JChannel lost = members[2].channel();
        Util.shutdown(lost, false);
        Member.awaitView(members[0], members[1]);
        assertThat(members[0].transport().numSuspectEvents()
                        + members[1].transport().numSuspectEvents())
                .isPositive();
        exchange(members[0], members[1]);

        Member back = join(place, 2);
        Member.awaitView(members[0], members[1], back);
        exchange(members[0], members[1], back);
    }

    @Test
    void partitionsMerge() throws Exception {
        Member[] members = cluster(3);
        long id = members[0].channel().getView().getViewId().getId();
        install(List.of(members[0]), id + 1);
        install(List.of(members[1], members[2]), id + 1);
        Member.awaitView(members);
        assertThat(members[0].views()).hasAtLeastOneElementOfType(MergeView.class);
        exchange(members);
    }

    private static void install(List<Member> members, long id) {
        View view = new View(
                new ViewId(members.getFirst().address(), id),
                members.stream().map(Member::address).toList());
        for (Member member : members) {
            member.channel().getProtocolStack().<GMS>findProtocol(GMS.class).installView(view);
        }
    }

    @Test
    void membersThatConnectAtOnceFindEachOther() throws Exception {
        Member[] members = cluster(2);
        CyclicBarrier together = new CyclicBarrier(2);
        for (int round = 0; round < 10; round++) {
            byte[] content = content(round, 1000);
            Thread thread = Thread.ofPlatform().start(() -> {
                try {
                    members[1].transport().clearConnections(true);
                    together.await();
                    send(members[1], members[0].address(), content);
                } catch (Exception failure) {
                    throw new AssertionError(failure);
                }
            });
            members[0].transport().clearConnections(true);
            together.await();
            send(members[0], members[1].address(), content);
            thread.join();
            for (Member member : members) {
                assertThat(member.take().<byte[]>getPayload()).isEqualTo(content);
            }
        }
        assertThat(members[0].views()).hasSize(2);
    }

    @Test
    void stateIsTransferred() throws Exception {
        Member[] members = cluster(2);
        byte[] state = content(1, 8 << 20);
        members[0].setState(state);
        members[1].channel().getState(null, Patience.LIMIT.toMillis());
        assertThat(members[1].state()).isEqualTo(state);
    }

    /** What {@link #callsAreAnswered} calls. */
    public static final class Service {
        private final String name;

        Service(String name) {
            this.name = name;
        }

        /** A reply of which the caller knows who made it. */
        public String reply(int number, byte[] bytes) {
            return name + " " + number + " " + Arrays.hashCode(bytes);
        }
    }

    @Test
    void callsAreAnswered() throws Exception {
        Member[] members = cluster(3);
        List<RpcDispatcher> dispatchers = new ArrayList<>();
        try {
            for (Member member : members) {
                dispatchers.add(new RpcDispatcher(
                        member.channel(), new Service(member.channel().getName())));
            }
            RequestOptions options = RequestOptions.SYNC().timeout(Patience.LIMIT.toMillis());
            for (int i = 0; i < 100; i++) {
                byte[] bytes = content(i, i * 1000);
                int number = i;
                Object[] arguments = {i, bytes};
                Class<?>[] types = {int.class, byte[].class};
                assertThat(dispatchers
                                .get(i % 3)
                                .<String>callRemoteMethods(null, "reply", arguments, types, options)
                                .getResults())
                        .containsExactlyInAnyOrderElementsOf(Arrays.stream(members)
                                .map(member -> new Service(member.channel().getName()).reply(number, bytes))
                                .toList());
            }
        } finally {
            for (RpcDispatcher dispatcher : dispatchers) {
                dispatcher.close();
            }
        }
    }

    @Test
    void aChannelConnectsAgain() throws Exception {
        Member[] members = cluster(2);
        members[1].channel().disconnect();
        Member.awaitView(members[0]);
        members[1].channel().connect("cluster");
        Member.awaitView(members);
        exchange(members);
        assertThat(members[1].channel().down(new Event(Event.GET_PHYSICAL_ADDRESS, members[1].address())))
                .hasToString(host() + ":" + ((IpAddress) members[1].transport().getPhysicalAddress()).getPort());
    }
}
