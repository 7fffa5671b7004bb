package org.verbena.doctor;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.provider.ProviderChoice;

/**
 * Examines what works on this machine, in the order in which a person would look: the JVM, Netty, libraries, kernel
 * modules, device nodes, locked memory, devices with their ports and GIDs, then traffic within this machine on each
 * device, on the software provider and over shared memory. If a peer is set, the path to it follows: name, route,
 * provider, connection, messages. The diagnosis has a verdict for each provider.
 *
 * <pre>{@code
 * Diagnosis diagnosis = new Doctor().peer("host", 7471).examine();
 * System.out.println(diagnosis.summary());
 * }</pre>
 *
 * <p>A machine without an RDMA device is not faulty: a check of something that only devices need is {@link
 * Verdict#SKIPPED}, with what to do, unless {@link #provider} asks for {@code verbs}.
 *
 * <p>A check that fails does not end the examination; a check that depends on a failed one is {@link Verdict#SKIPPED}.
 * An examination takes fractions of a second, and up to 5 seconds more for each connection or message that is not
 * answered. Not thread-safe.
 */
public final class Doctor {
    private static final String LOOPBACK = "127.0.0.1";

    private final SystemFiles files;
    private Consumer<Finding> listener = finding -> {};
    private String provider = ProviderChoice.configured();
    private @Nullable String host;
    private int port;
    private boolean echoes;

    /** Creates one that examines only this machine. */
    public Doctor() {
        this(SystemFiles.REAL);
    }

    Doctor(SystemFiles files) {
        this.files = files;
    }

    /**
     * Also examines the path to a peer.
     *
     * @param peerHost a name or an address
     * @param peerPort where it listens, 1 to 65535; or 0 to examine only the route, without connecting
     * @return this
     * @throws IllegalArgumentException the port is out of range
     */
    public Doctor peer(String peerHost, int peerPort) {
        if (peerPort < 0 || peerPort > 65535) {
            throw new IllegalArgumentException("a port is 0 to 65535, not " + peerPort);
        }
        host = Objects.requireNonNull(peerHost, "peerHost");
        port = peerPort;
        return this;
    }

    /**
     * Also sends messages of 64 bytes to 1 MiB to the peer, which must answer each with the same bytes, as {@code
     * verbena echo-server} does. Otherwise the connection is only opened and closed.
     *
     * @return this
     */
    public Doctor peerEchoes() {
        echoes = true;
        return this;
    }

    /**
     * Sets the provider that has to work, and that the connection to the peer uses; if not called, what {@code
     * org.verbena.provider} names.
     *
     * @param name {@code verbs}, {@code soft}, {@code shm} or {@code auto}; with {@code verbs} a machine without a
     *     device is a failure
     * @return this
     */
    public Doctor provider(String name) {
        provider = Objects.requireNonNull(name, "name");
        return this;
    }

    /**
     * Sets a consumer of each finding, as soon as it is made.
     *
     * @param consumer called on the thread that examines
     * @return this
     */
    public Doctor onFinding(Consumer<Finding> consumer) {
        listener = Objects.requireNonNull(consumer, "consumer");
        return this;
    }

    /**
     * Makes all checks. Blocks, so do not call it on an event loop.
     *
     * @return all findings
     */
    public Diagnosis examine() {
        List<Finding> findings = new ArrayList<>();
        Consumer<Finding> found = finding -> {
            findings.add(finding);
            listener.accept(finding);
        };
        KernelChecks kernel = new KernelChecks(files);
        DeviceChecks devices = new DeviceChecks(files);
        boolean wantsDevices = kernel.hasDevice() || devices.isAnyThere() || provider.contains(ProviderVerdict.VERBS);
        Consumer<Finding> ofDevices = finding -> found.accept(wantsDevices ? finding : finding.excused());
        found.accept(JvmCheck.check(Runtime.version()));
        Finding requirements = JvmCheck.requirements();
        found.accept(requirements);
        ofDevices.accept(devices.libraries());
        ofDevices.accept(kernel.modules());
        ofDevices.accept(kernel.nodes());
        ofDevices.accept(kernel.lockedMemory());
        devices.devices().forEach(ofDevices);
        int ofVerbs = findings.size();
        if (requirements.verdict() == Verdict.OK) {
            for (InetAddress address : devices.addresses()) {
                found.accept(TrafficChecks.loopback(ProviderVerdict.VERBS, address.getHostAddress()));
            }
            found.accept(TrafficChecks.software(LOOPBACK));
            Finding shm = TrafficChecks.sharedMemory(LOOPBACK);
            found.accept(provider.contains(ProviderVerdict.SHM) ? shm : shm.asWarning());
        }
        List<ProviderVerdict> providers = ProviderVerdict.of(requirements, findings.subList(0, ofVerbs), findings);
        if (host != null && requirements.verdict() == Verdict.OK) {
            TrafficChecks.peer(new Peer(host, port, provider, echoes), found);
        }
        return new Diagnosis(findings, providers);
    }
}
