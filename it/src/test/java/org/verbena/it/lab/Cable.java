package org.verbena.it.lab;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.verbena.transport.spi.Patience;

/**
 * A cable between two interfaces of this machine, with a device on each if wanted, that can be cut. What goes to
 * {@link #FAR} leaves by the near interface and comes in at the far one, and the other way round, although both
 * addresses are this machine's: the table of local addresses is looked into for what comes in, and after the cable's
 * for what goes out. Soft RoCE takes no short cut then either, as it does within a device.
 */
final class Cable implements AutoCloseable {
    /** The address to listen on. */
    static final String FAR = "10.81.0.2";

    private static final String NEAR = "10.81.0.1";
    private static final String NEAR_INTERFACE = "near";
    private static final String FAR_INTERFACE = "far";
    private static final int NEAR_TABLE = 81;
    private static final int FAR_TABLE = 82;

    /** Before these no rule but the cable's. */
    private static final int LOCAL_PRIORITY = 100;

    /** {@code rxe} or {@code siw}; null without devices. */
    private final String type;

    private boolean isCut;

    /**
     * Lays it.
     *
     * @param type of its devices, {@code rxe} or {@code siw}; null for none
     */
    Cable(String type) throws InterruptedException {
        this.type = type;
        run("ip link add " + NEAR_INTERFACE + " type veth peer name " + FAR_INTERFACE);
        plug(NEAR_INTERFACE, NEAR, FAR, NEAR_TABLE);
        plug(FAR_INTERFACE, FAR, NEAR, FAR_TABLE);
        run("ip rule add pref " + LOCAL_PRIORITY + " lookup local");
        run("ip rule del pref 0");
        if (type != null) {
            for (String end : List.of(NEAR_INTERFACE, FAR_INTERFACE)) {
                run("rdma link add " + device(end) + " type " + type + " netdev " + end);
                DeviceEventsTest.awaitLinks(device(end) + "/1 state ACTIVE", true);
            }
        }
    }

    private static void plug(String end, String address, String other, int table) {
        run("ip address add " + address + "/24 dev " + end);
        run("ip link set " + end + " up");
        run("sysctl -q -w net.ipv4.conf." + end + ".accept_local=1 net.ipv4.conf." + end + ".rp_filter=0");
        run("ip route add " + other + " dev " + end + " src " + address + " table " + table);
        run("ip rule add pref " + table + " iif lo to " + other + " lookup " + table);
    }

    private String device(String end) {
        return type + end;
    }

    /** Drops all packets, in both directions. */
    synchronized void cut() {
        isCut = true;
        for (String end : List.of(NEAR_INTERFACE, FAR_INTERFACE)) {
            run("tc qdisc add dev " + end + " root netem loss 100%");
        }
    }

    /** Takes packets again, if it was cut. */
    synchronized void mend() {
        if (!isCut) {
            return;
        }
        isCut = false;
        for (String end : List.of(NEAR_INTERFACE, FAR_INTERFACE)) {
            run("tc qdisc del dev " + end + " root");
        }
    }

    /** How many queue pairs of connections the far device has. */
    int farQueuePairs() {
        return type == null
                ? 0
                : (int) PeerProgram.run(
                                Patience.LIMIT, "rdma", "resource", "show", "qp", "link", device(FAR_INTERFACE) + "/1")
                        .lines()
                        .filter(line -> line.toUpperCase(Locale.ROOT).contains("TYPE RC"))
                        .count();
    }

    /** Takes it away. Whoever has its devices open must let go of them. */
    @Override
    public void close() {
        List<Throwable> failures = new ArrayList<>();
        if (type != null) {
            for (String end : List.of(NEAR_INTERFACE, FAR_INTERFACE)) {
                attempt(failures, "rdma link delete " + device(end));
            }
        }
        attempt(failures, "ip rule add pref 0 lookup local");
        attempt(failures, "ip rule del pref " + LOCAL_PRIORITY);
        attempt(failures, "ip rule del pref " + NEAR_TABLE);
        attempt(failures, "ip rule del pref " + FAR_TABLE);
        attempt(failures, "ip link delete " + NEAR_INTERFACE);
        if (!failures.isEmpty()) {
            AssertionError all = new AssertionError("the cable is not gone");
            failures.forEach(all::addSuppressed);
            throw all;
        }
    }

    private static void attempt(List<Throwable> failures, String command) {
        try {
            run(command);
        } catch (AssertionError failure) {
            failures.add(failure);
        }
    }

    private static void run(String command) {
        PeerProgram.run(Patience.LIMIT, command.split(" "));
    }
}
