package org.verbena.transport.soft;

import java.io.IOException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import jdk.net.ExtendedSocketOptions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.transport.ConnectionException;

/** The TCP side of iWARP: the options of channels, the size of segments, and the meaning of failures. */
final class TcpChannels {
    private static final Logger LOG = LoggerFactory.getLogger(TcpChannels.class);

    /** Unanswered TCP keepalive probes that make a connection lost. */
    private static final int KEEPALIVE_PROBES = 3;

    /** For interfaces that do not report one: Ethernet's. */
    private static final int DEFAULT_MTU = 1500;

    /** The MTU that every IPv4 host accepts: an interface that reports less does not know its own. */
    private static final int MIN_MTU = 576;

    /** IPv4 and TCP headers with the time stamp option. */
    private static final int IP_TCP_HEADER_BYTES = 20 + 20 + 12;

    /** The bytes that an IPv6 header is longer. */
    private static final int IPV6_EXTRA_BYTES = 20;

    private static final Path SYN_RETRIES = Path.of("/proc/sys/net/ipv4/tcp_syn_retries");

    /** One retry, after a second, and two more for its answer: no system gives up sooner. */
    private static final long FIRST_RETRIES_NANOS = TimeUnit.SECONDS.toNanos(3);

    /** A system without that file takes a minute or more. */
    private static final int OTHER_SYSTEMS_SECONDS = 60;

    private TcpChannels() {}

    /**
     * Sets the options of a channel.
     *
     * @param channel open
     * @param stallTimeoutMillis about how soon a peer that owes nothing and has vanished is detected; 0 for the
     *     system's time
     * @param trafficClass the type of service; 0 to leave it
     * @throws IOException the system refuses
     */
    static void configure(SocketChannel channel, int stallTimeoutMillis, int trafficClass) throws IOException {
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
        int stallSeconds = stallTimeoutMillis / 1000;
        if (stallSeconds > 0 && channel.supportedOptions().contains(ExtendedSocketOptions.TCP_KEEPIDLE)) {
            channel.setOption(ExtendedSocketOptions.TCP_KEEPIDLE, Math.max(1, stallSeconds / 2));
            channel.setOption(ExtendedSocketOptions.TCP_KEEPINTERVAL, Math.max(1, stallSeconds / 2 / KEEPALIVE_PROBES));
            channel.setOption(ExtendedSocketOptions.TCP_KEEPCOUNT, KEEPALIVE_PROBES);
        }
        if (trafficClass != 0) {
            channel.setOption(StandardSocketOptions.IP_TOS, trafficClass);
        }
    }

    /**
     * What fits one TCP segment, as far as Java reports it.
     *
     * @param local the connection's address on this side
     * @return bytes of payload
     */
    static int segmentBytes(InetSocketAddress local) {
        int mtu = DEFAULT_MTU;
        try {
            NetworkInterface device = NetworkInterface.getByInetAddress(local.getAddress());
            mtu = device == null || device.getMTU() < MIN_MTU ? DEFAULT_MTU : device.getMTU();
        } catch (SocketException e) {
            LOG.debug("asking for the MTU of {}", local, e);
        }
        boolean ipv6 = local.getAddress().getAddress().length > 4;
        return mtu - IP_TCP_HEADER_BYTES - (ipv6 ? IPV6_EXTRA_BYTES : 0);
    }

    /**
     * Explains why connecting failed, once TCP had been asked to. Java has a class for each kind of error number, and
     * the operating system's text for each, in whatever language: the classes decide.
     *
     * @param remoteAddress where to
     * @param e how
     * @param tookNanos how long it took
     * @return for the user
     */
    static ConnectionException connectFailure(InetSocketAddress remoteAddress, Exception e, long tookNanos) {
        String what = "connecting to " + remoteAddress + ": " + e.getMessage();
        if (e instanceof ConnectException) { // ECONNREFUSED or ETIMEDOUT
            return tookNanos < minTimeoutNanos(tookNanos)
                    ? new ConnectionException.Rejected(
                            what
                                    + "; nobody listens there: check that the server is up, and that it uses the soft"
                                    + " provider or an iWARP device",
                            new byte[0])
                    : new ConnectionException.TimedOut(what);
        }
        if (e instanceof BindException) { // EADDRNOTAVAIL
            return new ConnectionException(
                    what
                            + "; no local port is free towards that address: net.ipv4.ip_local_port_range has all that"
                            + " there are, and one of a closed connection is free after its TIME_WAIT of a minute",
                    e);
        }
        if (e instanceof SocketException) { // EHOSTUNREACH, ENETUNREACH and the like
            return new ConnectionException.Unreachable(what, e);
        }
        return new ConnectionException(what, e);
    }

    /**
     * How long the system tries at least before it says that a connection has timed out. Source: tcp(7),
     * tcp_syn_retries.
     */
    private static long minTimeoutNanos(long tookNanos) {
        if (tookNanos < FIRST_RETRIES_NANOS) {
            return FIRST_RETRIES_NANOS;
        }
        try {
            int retries = Integer.parseInt(Files.readString(SYN_RETRIES).strip());
            return TimeUnit.SECONDS.toNanos((2L << Math.clamp(retries, 1, 20)) - 1);
        } catch (IOException | NumberFormatException notLinux) {
            LOG.trace("{} does not say how often TCP tries to connect", SYN_RETRIES, notLinux);
            return TimeUnit.SECONDS.toNanos(OTHER_SYSTEMS_SECONDS);
        }
    }
}
