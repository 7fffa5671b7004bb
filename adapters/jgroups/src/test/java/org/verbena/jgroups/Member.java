package org.verbena.jgroups;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jgroups.Address;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.Receiver;
import org.jgroups.View;
import org.verbena.transport.spi.Patience;

/** A member of a cluster, as a program makes it from JGroups' XML. */
public final class Member implements Receiver, AutoCloseable {
    /** What JGroups ships for TCP, with shorter times, and Verbena's transport. */
    private static final String XML = """
            <config xmlns="urn:org:jgroups">
              <org.verbena.jgroups.VERBENA bind_addr="%1$s" bind_port="%2$d" port_range="0" provider="%3$s"
                  event_loops="1" sock_conn_timeout="30000" enable_suspect_events="true" diag.enabled="false"/>
              <TCPPING initial_hosts="%4$s" port_range="0"/>
              <MERGE3 min_interval="300" max_interval="600"/>
              <FD_SOCK2/>
              <FD_ALL3 timeout="30000" interval="5000"/>
              <VERIFY_SUSPECT2 timeout="500"/>
              <BARRIER/>
              <pbcast.NAKACK2 use_mcast_xmit="false" xmit_interval="200"/>
              <UNICAST3 xmit_interval="200"/>
              <pbcast.STABLE desired_avg_gossip="5000" max_bytes="4M"/>
              <pbcast.GMS print_local_addr="false" join_timeout="%5$d"/>
              %6$s
              <pbcast.STATE_TRANSFER/>
            </config>
            """;

    /** Flow control, and what cuts long messages into parts, which flow control needs. */
    public static final String FRAGMENTS =
            "<MFC max_credits=\"2M\"/><UFC max_credits=\"2M\"/><FRAG4 frag_size=\"60K\"/>";

    /** Where members of a cluster are, and how they are connected. */
    public record Place(String provider, String host, List<Integer> ports, String more, int joinMillis) {
        /** The first member of a cluster waits so long for others, of which there is none. */
        private static final int FIRST_JOIN_MILLIS = 100;

        /** Others find the first at once, also on a slow machine. */
        private static final int JOIN_MILLIS = 10_000;

        /** Ports of an address that are free. */
        public static Place of(String provider, String host, int members) throws Exception {
            Integer[] ports = new Integer[members];
            for (int i = 0; i < members; i++) {
                ports[i] = freePort(host);
            }
            return of(provider, host, List.of(ports));
        }

        static Place of(String provider, String host, List<Integer> ports) {
            return new Place(provider, host, ports, FRAGMENTS, JOIN_MILLIS);
        }

        Place withMore(String protocols) {
            return new Place(provider, host, ports, protocols, joinMillis);
        }

        Place withProvider(String other) {
            return new Place(other, host, ports, more, joinMillis);
        }

        /** For a member that others do not let in. */
        Place withJoinMillis(int millis) {
            return new Place(provider, host, ports, more, millis);
        }

        String xml(int member) {
            String hosts = ports.stream().map(port -> host + "[" + port + "]").collect(Collectors.joining(","));
            return XML.formatted(
                    host, ports.get(member), provider, hosts, member == 0 ? FIRST_JOIN_MILLIS : joinMillis, more);
        }
    }

    private final JChannel channel;
    private final BlockingQueue<Message> received = new LinkedBlockingQueue<>();
    private final List<View> views = new CopyOnWriteArrayList<>();
    private volatile byte[] state = {};

    private Member(JChannel channel) {
        this.channel = channel;
    }

    /** Joins. */
    public static Member join(Place place, int number) throws Exception {
        return join(place, number, transport -> {});
    }

    /** Joins, with what a program sets on the transport. */
    static Member join(Place place, int number, Consumer<VERBENA> options) throws Exception {
        JChannel channel =
                new JChannel(new ByteArrayInputStream(place.xml(number).getBytes("UTF-8")));
        Member member = new Member(channel);
        channel.setName("member" + number).setReceiver(member);
        options.accept(member.transport());
        channel.connect("cluster");
        return member;
    }

    /** Below those that the system gives to programs that ask for any. */
    private static int freePort(String host) throws Exception {
        while (true) {
            int port = ThreadLocalRandom.current().nextInt(20_000, 32_000);
            try (ServerSocket free = new ServerSocket()) {
                free.bind(new InetSocketAddress(InetAddress.getByName(host), port));
                return port;
            } catch (BindException taken) {
                continue; // another one
            }
        }
    }

    JChannel channel() {
        return channel;
    }

    Address address() {
        return channel.getAddress();
    }

    VERBENA transport() {
        return (VERBENA) channel.getProtocolStack().getTransport();
    }

    List<View> views() {
        return views;
    }

    void setState(byte[] bytes) {
        state = bytes.clone();
    }

    byte[] state() {
        return state;
    }

    Message take() {
        return Patience.take("a message at " + channel.getName(), received);
    }

    /** As {@link #take}, for a process that another one ends: however long that one needs for the next. */
    Message awaitNext() throws InterruptedException {
        return received.take();
    }

    boolean hasMessages() {
        return !received.isEmpty();
    }

    /** Waits until all of them, and nobody else, are in one view. */
    static void awaitView(Member... members) {
        List<Address> addresses = Arrays.stream(members).map(Member::address).toList();
        for (Member member : members) {
            Patience.until(
                    "a view of " + addresses + " at " + member.channel.getName() + ", which has "
                            + member.channel.getView(),
                    () -> member.channel.getView() != null
                            && member.channel.getView().size() == members.length
                            && member.channel.getView().getMembers().containsAll(addresses)
                            && member.channel
                                    .getView()
                                    .getViewId()
                                    .equals(members[0].channel.getView().getViewId()));
        }
    }

    @Override
    public void receive(Message message) {
        received.add(message);
    }

    @Override
    public void viewAccepted(View view) {
        views.add(view);
    }

    @Override
    public void getState(OutputStream out) throws Exception {
        out.write(state);
    }

    @Override
    public void setState(InputStream in) throws Exception {
        state = in.readAllBytes();
    }

    @Override
    public void close() {
        channel.close();
    }
}
