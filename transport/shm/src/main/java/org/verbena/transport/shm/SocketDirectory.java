package org.verbena.transport.shm;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.Principal;
import java.util.HexFormat;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import jdk.net.ExtendedSocketOptions;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.system.UserDirectory;

/**
 * The directory with the sockets of one user's servers: their names are port and address, so that a port is bound once,
 * as with TCP. A socket whose process was killed is found by nobody answering, and removed by the next that wants its
 * name.
 */
final class SocketDirectory {
    private static final String ANY = "any";
    private static final String LOCK = "lock";

    /** The ports that Linux gives to those who want any. */
    private static final int FIRST_EPHEMERAL_PORT = 32_768;

    private static final int EPHEMERAL_PORTS = 28_232;
    private static final int PORT_ATTEMPTS = 256;

    /** Of {@code struct sockaddr_un}. Source: unix(7) */
    private static final int MAX_NAME_BYTES = 107;

    /** File locks are of the process; within it, this monitor is. */
    private static final Object MONITOR = new Object();

    private final Path path;

    private SocketDirectory(Path path) {
        this.path = path;
    }

    /**
     * A server's socket.
     *
     * @param directory where it is
     * @param channel bound
     * @param file its name
     * @param address the address and port that the name stands for
     */
    record Bound(SocketDirectory directory, ServerSocketChannel channel, Path file, InetSocketAddress address) {
        /** Closes the socket and removes its name. */
        void close() throws IOException {
            // The name first: whoever finds it afterwards finds another's.
            Files.deleteIfExists(file);
            channel.close();
        }
    }

    /**
     * Opens the directory, and makes it if there is none.
     *
     * @param wanted where; null for the usual place
     * @return one that belongs to this user alone
     * @throws IOException it cannot be made, or others may write in it
     */
    static SocketDirectory open(@Nullable Path wanted) throws IOException {
        Path path = wanted == null ? UserDirectory.of("verbena-shm") : wanted;
        if (!UserDirectory.make(path)) {
            Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(path);
            if (permissions.contains(PosixFilePermission.GROUP_WRITE)
                    || permissions.contains(PosixFilePermission.OTHERS_WRITE)) {
                throw new IOException(path + " has the permissions " + PosixFilePermissions.toString(permissions)
                        + ", and nobody else may write there: chmod 700 it, or set org.verbena.shm.directory");
            }
        }
        return new SocketDirectory(path);
    }

    /**
     * Refuses the process of another user: somebody may have been let into the directory.
     *
     * @param peer connected
     * @throws IOException it is another user's, or the system does not say
     */
    void checkUser(SocketChannel peer) throws IOException {
        Principal user = peer.getOption(ExtendedSocketOptions.SO_PEERCRED).user();
        if (!user.equals(Files.getOwner(path))) {
            throw new IOException("the peer runs as " + user.getName() + ", and memory is shared within one user only");
        }
    }

    /** Whether an address is one of this host, or of all. */
    static boolean isLocal(InetAddress address) {
        try {
            return address.isAnyLocalAddress()
                    || address.isLoopbackAddress()
                    || NetworkInterface.getByInetAddress(address) != null;
        } catch (SocketException unknown) {
            return false;
        }
    }

    private static String name(InetSocketAddress address) {
        InetAddress host = address.getAddress();
        return address.getPort() + "-"
                + (host.isAnyLocalAddress() ? ANY : HexFormat.of().formatHex(host.getAddress()));
    }

    /**
     * Binds a socket.
     *
     * @param wanted an address of this host; port 0 for any that is free
     * @param backlog clients that wait
     * @return open
     * @throws IOException the address is taken, or not this host's
     */
    Bound bind(InetSocketAddress wanted, int backlog) throws IOException {
        if (!isLocal(wanted.getAddress())) {
            throw new IOException("Cannot assign requested address");
        }
        synchronized (MONITOR) {
            try (FileChannel lockFile =
                            FileChannel.open(path.resolve(LOCK), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                    FileLock lock = lockFile.lock()) {
                assert lock.isValid();
                if (wanted.getPort() != 0) {
                    return bindNow(wanted, backlog);
                }
                for (int i = 0; i < PORT_ATTEMPTS; i++) {
                    InetSocketAddress candidate = new InetSocketAddress(wanted.getAddress(), anyPort());
                    if (!isTaken(candidate)) {
                        return bindNow(candidate, backlog);
                    }
                }
                throw new IOException("no port is free");
            }
        }
    }

    /** A number as Linux gives it to those who want any; it may be in use. */
    static int anyPort() {
        return FIRST_EPHEMERAL_PORT + ThreadLocalRandom.current().nextInt(EPHEMERAL_PORTS);
    }

    private Bound bindNow(InetSocketAddress address, int backlog) throws IOException {
        if (isTaken(address)) {
            throw new IOException("Address already in use");
        }
        Path file = path.resolve(name(address));
        ServerSocketChannel channel = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            channel.bind(UnixDomainSocketAddress.of(file), backlog);
        } catch (IOException e) {
            channel.close();
            throw file.toString().length() > MAX_NAME_BYTES
                    ? new IOException(file + " is too long for the name of a socket: set org.verbena.shm.directory", e)
                    : e;
        }
        return new Bound(this, channel, file, address);
    }

    /** Whether somebody has this port of this address, or of all; names of the dead are removed. */
    private boolean isTaken(InetSocketAddress address) throws IOException {
        String own = name(address);
        boolean any = address.getAddress().isAnyLocalAddress();
        try (DirectoryStream<Path> same = Files.newDirectoryStream(path, address.getPort() + "-*")) {
            for (Path file : same) {
                String name = file.getFileName().toString();
                boolean conflicts = any || name.equals(own) || name.equals(address.getPort() + "-" + ANY);
                if (conflicts && isAlive(file)) {
                    return true;
                }
            }
        }
        return false;
    }

    private static boolean isAlive(Path file) throws IOException {
        try (SocketChannel probe = SocketChannel.open(StandardProtocolFamily.UNIX)) {
            probe.configureBlocking(false); // its backlog may be full
            probe.connect(UnixDomainSocketAddress.of(file));
            return true;
        } catch (IOException refused) {
            if (String.valueOf(refused.getMessage()).contains("refused")) {
                Files.deleteIfExists(file);
                return false;
            }
            return Files.exists(file);
        }
    }

    /**
     * Finds the server of an address.
     *
     * @param address of this host, with its port
     * @return the name of its socket; null if there is none
     */
    @Nullable Path find(InetSocketAddress address) {
        Path own = path.resolve(name(address));
        if (Files.exists(own)) {
            return own;
        }
        Path any = path.resolve(address.getPort() + "-" + ANY);
        return Files.exists(any) ? any : null;
    }

    @Override
    public String toString() {
        return path.toString();
    }
}
