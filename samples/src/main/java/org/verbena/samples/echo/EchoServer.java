package org.verbena.samples.echo;

import java.io.PrintWriter;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.verbena.api.RdmaServer;
import org.verbena.samples.command.ConnectionOptions;
import org.verbena.samples.command.LoopOptions;
import org.verbena.samples.command.ServerSignals;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Sends back every message, until it is stopped. The server itself is one expression. */
@Command(name = "echo-server", description = "Sends back what echo-client sends.")
public final class EchoServer implements Callable<Integer> {
    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private ConnectionOptions options;

    @Mixin
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private LoopOptions loop;

    @CommandLine.Spec
    @SuppressWarnings("NullAway.Init") // picocli sets it
    private CommandLine.Model.CommandSpec spec;

    @Override
    public Integer call() throws InterruptedException {
        ServerSignals.endWithZero();
        try (RdmaServer server = RdmaServer.builder()
                .provider(options.provider)
                .loopOptions(loop.completionLoop())
                .bind(options.host, options.listenPort(), (exchange, message) -> exchange.reply(message.retain()))) {
            PrintWriter out = spec.commandLine().getOut();
            out.println("echo-server listens on " + server.localAddress() + " (" + server.provider() + ")");
            out.flush();
            new CountDownLatch(1).await();
        }
        return CommandLine.ExitCode.OK;
    }
}
