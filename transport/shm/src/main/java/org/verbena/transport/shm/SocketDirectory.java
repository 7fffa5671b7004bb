package org.verbena.transport.shm;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HexFormat;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.shm.ffm.HeldName;
import org.verbena.transport.shm.ffm.UnixSockets;
import org.verbena.transport.software.LoopSocket;
import org.verbena.transport.system.UserDirectory;

/**
 * The directory with the sockets of one user's servers: their names are port and address, so that a port is bound once,
 * as with TCP. A socket whose process was killed does not answer: the next server that wants its name removes it.
 */
final class SocketDirectory {
    private static final String ANY = "any";
    private static final String LOCK = "lock";

    /** The ports that Linux gives to programs that ask for any. */
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
     * @param name held, to know whether it is still there
     * @param address the address and port that the name stands for
     */
    record Bound(
            SocketDirectory directory,
            ServerSocketChannel channel,
            Path file,
            HeldName name,
            InetSocketAddress address) {
        /** Whether clients find it. */
        boolean hasName() {
            return name.isIntact();
        }

        /** Closes the socket and removes its name. */
        void close() throws IOException {
            // The name first: what is found under it afterwards is another's.
            if (hasName()) {
                Files.deleteIfExists(file);
            }
            name.close();
            channel.close();
        }
    }

    /** Which file has a name. */
    private static Optional<Object> keyOf(Path file) {
        try {
            return Optional.ofNullable(Files.readAttributes(file, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS)
                    .fileKey());
        } catch (IOException none) {
            return Optional.empty();
        }
    }

    /**
     * Opens the directory, and makes it if there is none.
     *
     * @param wanted where; null for the usual place
     * @return one that belongs to this user
     * @throws IOException it cannot be made, or others may write in it
     */
    static SocketDirectory open(@Nullable Path wanted) throws IOException {
        Path path = wanted == null ? UserDirectory.of("verbena-shm") : wanted;
        boolean isNew;
        try {
            isNew = UserDirectory.make(path);
        } catch (FileSystemException refused) {
            throw new IOException(
                    "the directory of this user's servers cannot be made: " + refused
                            + "; set org.verbena.shm.directory to one that can, for servers and clients",
                    refused);
        }
        if (!isNew) {
            Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(path);
            if (permissions.contains(PosixFilePermission.GROUP_WRITE)
                    || permissions.contains(PosixFilePermission.OTHERS_WRITE)) {
                throw new IOException(path + " has the permissions " + PosixFilePermissions.toString(permissions)
                        + ", and nobody else may write there: chmod 700 it, or set org.verbena.shm.directory");
            }
        }
        return new SocketDirectory(path);
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
            throw new BindException(
                    "Cannot assign requested address: " + wanted.getAddress().getHostAddress() + " is not this host's");
        }
        synchronized (MONITOR) {
            while (true) {
                Path lockName = path.resolve(LOCK);
                try (FileChannel lockFile =
                        FileChannel.open(lockName, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
                    Optional<Object> opened = keyOf(lockName);
                    try (FileLock lock = lockFile.lock()) {
                        assert lock.isValid();
                        // It may have been removed meanwhile: then others lock another one.
                        if (opened.equals(keyOf(lockName))) {
                            return bindLocked(wanted, backlog);
                        }
                    }
                } catch (FileSystemException refused) {
                    throw new IOException(
                            "the directory of this user's servers cannot be used: " + refused
                                    + "; set org.verbena.shm.directory to one that can, for servers and clients"
                                    + (hasKnownCause(refused) ? "" : LoopSocket.DESCRIPTORS_HINT),
                            refused);
                }
            }
        }
    }

    /** Java has classes for permissions and missing files, and one for everything else. */
    private static boolean hasKnownCause(FileSystemException refused) {
        return refused.getClass() != FileSystemException.class;
    }

    private Bound bindLocked(InetSocketAddress wanted, int backlog) throws IOException {
        if (wanted.getPort() != 0) {
            return bindNow(wanted, backlog);
        }
        for (int i = 0; i < PORT_ATTEMPTS; i++) {
            InetSocketAddress candidate = new InetSocketAddress(wanted.getAddress(), anyPort());
            if (whoHas(candidate) == null) {
                return bindNow(candidate, backlog);
            }
        }
        throw new IOException("no port is free");
    }

    /** A number as Linux gives it to programs that ask for any; it may be in use. */
    static int anyPort() {
        return FIRST_EPHEMERAL_PORT + ThreadLocalRandom.current().nextInt(EPHEMERAL_PORTS);
    }

    private Bound bindNow(InetSocketAddress address, int backlog) throws IOException {
        String taker = whoHas(address);
        if (taker != null) {
            throw new BindException("Address already in use by " + taker);
        }
        Path file = path.resolve(name(address));
        ServerSocketChannel channel = LoopSocket.open(() -> ServerSocketChannel.open(StandardProtocolFamily.UNIX));
        try {
            channel.bind(UnixDomainSocketAddress.of(file), backlog);
            return new Bound(this, channel, file, HeldName.of(file), address);
        } catch (IOException e) {
            channel.close();
            throw file.toString().length() > MAX_NAME_BYTES
                    ? new IOException(file + " is too long for the name of a socket: set org.verbena.shm.directory", e)
                    : e;
        }
    }

    /**
     * The owner of this port of this address, or of all; null if there is none. Names of dead processes are removed.
     */
    private @Nullable String whoHas(InetSocketAddress address) throws IOException {
        String prefix = address.getPort() + "-";
        try (DirectoryStream<Path> same = Files.newDirectoryStream(path, prefix + "*")) {
            for (Path file : same) {
                if (conflicts(file, address) && isAlive(file)) {
                    return "the server of " + file;
                }
            }
        }
        String nameless =
                NamelessSockets.findProcess(file -> path.toAbsolutePath().equals(file.getParent())
                        && file.getFileName().toString().startsWith(prefix)
                        && conflicts(file, address));
        return nameless == null
                ? null
                : "the process " + nameless + ", whose socket's name was removed from " + path
                        + ": exclude the directory from clean-up";
    }

    private static boolean conflicts(Path file, InetSocketAddress address) {
        String name = file.getFileName().toString();
        return address.getAddress().isAnyLocalAddress()
                || name.equals(name(address))
                || name.equals(address.getPort() + "-" + ANY);
    }

    private static boolean isAlive(Path file) throws IOException {
        return switch (UnixSockets.ask(file)) {
            case LISTENS, IS_FULL -> true;
            case NOBODY -> {
                Files.deleteIfExists(file);
                yield false;
            }
            case NO_NAME -> false;
        };
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
