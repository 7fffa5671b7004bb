package org.verbena.tools.interop.pingpong;

import org.verbena.verbs.device.Mtu;
import org.verbena.verbs.queue.QueuePairType;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/**
 * Java versions of rdma-core's {@code ibv_*_pingpong}: messages go back and forth over queue pairs that are connected
 * without a connection manager. Each side interoperates with C's. Every kind is a command with the options that C's
 * program has; {@link PingPongCommand} has what the first four have in common, {@link XsrqPingPong} is the fifth.
 *
 * <p>Source: ibv_rc_pingpong(1)
 */
@Command(
        name = "pingpong",
        description =
                "Sends messages back and forth, like ibv_rc_pingpong(1) and its relatives; each end interoperates with C's.",
        synopsisSubcommandLabel = "KIND",
        commandListHeading = "%nKinds, each with its own options (pingpong KIND --help):%n",
        subcommands = {
            PingPong.Reliable.class,
            PingPong.Unreliable.class,
            PingPong.Datagrams.class,
            PingPong.Shared.class,
            XsrqPingPong.class
        },
        footer = PingPong.GID_NOTE)
public final class PingPong implements Runnable {
    static final String GID_NOTE =
            "%nOn RoCE both sides need -g: the index of a RoCE v2 GID that `verbena devices` lists.";

    /** What is measured. */
    enum Kind {
        /** Reliable connection. */
        RC(QueuePairType.RC),
        /** Unreliable connection. */
        UC(QueuePairType.UC),
        /** Unreliable datagrams. */
        UD(QueuePairType.UD),
        /** Reliable connections with a shared receive queue. */
        SRQ(QueuePairType.RC);

        final QueuePairType type;

        Kind(QueuePairType type) {
            this.type = type;
        }
    }

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "choose a kind: rc, uc, ud, srq or xsrq");
    }

    /** {@code ibv_rc_pingpong}. */
    @Command(
            name = "rc",
            description = "Over a reliable connection, like ibv_rc_pingpong(1).",
            footer = {
                "%nMany devices lack what -o, -O, -t, -j and -N need; the command checks before it connects.",
                GID_NOTE
            })
    static final class Reliable extends PingPongCommand {
        @Mixin
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private MtuOption mtu;

        @Mixin
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private OnDemandOption onDemand;

        @Option(
                names = {"-O", "--iodp"},
                description = "Use implicit on-demand paging: register the whole address space.")
        private boolean implicit;

        @Option(
                names = {"-P", "--prefetch"},
                description = "Prefetch the pages at the start; with -o or -O.")
        private boolean prefetching;

        @Option(
                names = {"-t", "--ts"},
                description = "Use completions with the device's timestamps, and print the cycles between receives.")
        private boolean timestamps;

        @Option(
                names = {"-j", "--dm"},
                description = "Send from and receive into device memory; not with -o or -O.")
        private boolean deviceMemory;

        @Option(
                names = {"-N", "--new_send"},
                description = "Send by work request builders (ibv_wr_*).")
        private boolean newSend;

        @Override
        PingPongPlan plan(CommandLine.Model.CommandSpec spec) {
            boolean paging = onDemand.wanted || implicit;
            if (paging && deviceMemory) {
                throw new ParameterException(
                        spec.commandLine(),
                        "-j (--dm) cannot be combined with -o or -O: device memory is not paged on demand");
            }
            if (prefetching && !paging) {
                throw new ParameterException(
                        spec.commandLine(), "-P (--prefetch) is for memory that is paged on demand: give -o or -O too");
            }
            PingPongFeatures features =
                    new PingPongFeatures(paging, implicit, prefetching, timestamps, deviceMemory, newSend);
            return plan(Kind.RC, mtu.mtu, features);
        }
    }

    /** {@code ibv_uc_pingpong}. */
    @Command(name = "uc", description = "Over an unreliable connection, like ibv_uc_pingpong(1).", footer = GID_NOTE)
    static final class Unreliable extends PingPongCommand {
        @Mixin
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private MtuOption mtu;

        @Override
        PingPongPlan plan(CommandLine.Model.CommandSpec spec) {
            return plan(Kind.UC, mtu.mtu, PingPongFeatures.NONE);
        }
    }

    /** {@code ibv_ud_pingpong}. */
    @Command(name = "ud", description = "With datagrams, like ibv_ud_pingpong(1).", footer = GID_NOTE)
    static final class Datagrams extends PingPongCommand {
        @Override
        PingPongPlan plan(CommandLine.Model.CommandSpec spec) {
            // Datagrams have no path MTU; the port's is checked.
            return plan(Kind.UD, Mtu.MTU_1024, PingPongFeatures.NONE);
        }
    }

    /** {@code ibv_srq_pingpong}. */
    @Command(
            name = "srq",
            description = "Over reliable connections with a shared receive queue, like ibv_srq_pingpong(1).",
            footer = {"%nMany devices lack what -o needs; the command checks before it connects.", GID_NOTE})
    static final class Shared extends PingPongCommand {
        @Mixin
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private MtuOption mtu;

        @Mixin
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private OnDemandOption onDemand;

        @Option(
                names = {"-q", "--num-qp"},
                paramLabel = "COUNT",
                defaultValue = "16",
                description = "How many queue pairs (${DEFAULT-VALUE}).")
        private int queuePairs;

        @Override
        PingPongPlan plan(CommandLine.Model.CommandSpec spec) {
            PingPongOptions.requireRange(spec, "num-qp", queuePairs, 1, PingPongSession.MAX_QUEUE_PAIRS);
            return plan(Kind.SRQ, mtu.mtu, PingPongFeatures.onDemand(onDemand.wanted))
                    .withQueuePairs(queuePairs);
        }
    }

    /** On-demand paging, for commands to mix in. */
    static final class OnDemandOption {
        @Option(
                names = {"-o", "--odp"},
                description = "Use on-demand paging: the adapter faults pages in, and none is pinned.")
        boolean wanted;
    }
}
