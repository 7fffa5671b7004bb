package org.verbena.samples.kv;

import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import org.verbena.samples.command.CommandFailure;
import org.verbena.samples.command.ConnectionOptions;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/** The commands of a key-value client; {@link KvConnection} does the work. */
@Command(
        name = "kv-client",
        description = "Reads a kv-server's values with RDMA READ, and puts them.",
        subcommands = {KvClient.Get.class, KvClient.Put.class, KvBench.class})
public final class KvClient implements Runnable {
    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "choose a command: get, put or bench");
    }

    static byte[] bytes(String key) {
        byte[] bytes = key.getBytes(StandardCharsets.UTF_8);
        if (bytes.length < 1 || bytes.length > KvFormat.MAX_KEY_BYTES) {
            throw new CommandFailure(
                    "a key has 1 to " + KvFormat.MAX_KEY_BYTES + " bytes in UTF-8; this one has " + bytes.length);
        }
        return bytes;
    }

    /** The first and last steps of all of them. */
    abstract static class Connected implements Callable<Integer> {
        @Mixin
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private ConnectionOptions options;

        @CommandLine.Spec
        @SuppressWarnings("NullAway.Init") // picocli sets it
        CommandLine.Model.CommandSpec spec;

        @Override
        public final Integer call() throws InterruptedException {
            check();
            try (KvConnection connection = new KvConnection(options.provider, options.host, options.remotePort())) {
                run(connection);
            }
            return CommandLine.ExitCode.OK;
        }

        /** Checks the ranges of the options. */
        void check() {}

        abstract void run(KvConnection connection) throws InterruptedException;
    }

    /** {@code get KEY}. */
    @Command(name = "get", description = "Prints a value, with an RDMA READ and without the server's program.")
    static final class Get extends Connected {
        @Parameters(paramLabel = "KEY", description = "1 to 255 bytes in UTF-8.")
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private String key;

        @Override
        void run(KvConnection connection) throws InterruptedException {
            byte[] value = connection
                    .get(bytes(key))
                    .orElseThrow(() -> new CommandFailure("there is no key " + key + ": kv-client put sets it"));
            PrintWriter out = spec.commandLine().getOut();
            out.println(new String(value, StandardCharsets.UTF_8));
            out.flush();
        }
    }

    /** {@code put KEY VALUE}. */
    @Command(name = "put", description = "Sets a value, by a request to the server.")
    static final class Put extends Connected {
        @Parameters(index = "0", paramLabel = "KEY", description = "1 to 255 bytes in UTF-8.")
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private String key;

        @Parameters(index = "1", paramLabel = "VALUE", description = "Up to the server's --value-size in UTF-8.")
        @SuppressWarnings("NullAway.Init") // picocli sets it
        private String value;

        @Override
        void run(KvConnection connection) throws InterruptedException {
            connection.put(bytes(key), value.getBytes(StandardCharsets.UTF_8));
        }
    }
}
