package org.verbena.tools.perf;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.Channel;
import java.io.IOException;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.verbena.api.Exchange;
import org.verbena.samples.command.CommandFailure;

/**
 * Runs the servers of C programs for clients that compare, one at a time. The server's user allows some programs; a
 * client chooses only numbers, no word of a command line.
 */
final class ToolServing {
    private final Set<PerfTool> allowed;
    private final int port;
    private final boolean hasDevice;
    private @Nullable Channel owner;
    private @Nullable Process running;

    /**
     * Creates one that runs nothing yet.
     *
     * @param allowed what clients may start
     * @param port where it listens
     * @param hasDevice whether the perf server uses an RDMA device
     */
    ToolServing(Set<PerfTool> allowed, int port, boolean hasDevice) {
        this.allowed = allowed;
        this.port = port;
        this.hasDevice = hasDevice;
    }

    /** Ends what it runs when this process ends. */
    void endWithProcess() {
        Runtime.getRuntime().addShutdownHook(new Thread(this::stop, "end of C programs"));
    }

    /**
     * Starts one, which ends with the connection at the latest, and replies with its port, or with 0 and the reason why
     * it does not run.
     */
    void start(Exchange exchange, PerfTool tool, ToolRun run) {
        Thread.startVirtualThread(() -> exchange.reply(started(exchange.channel(), tool, run)));
    }

    /** Ends the program that the client has started, and replies. */
    void end(Exchange exchange) {
        Thread.startVirtualThread(() -> {
            end(exchange.channel());
            exchange.reply(exchange.channel().alloc().buffer(Integer.BYTES).writeInt(port));
        });
    }

    private ByteBuf started(Channel channel, PerfTool tool, ToolRun run) {
        ByteBuf reply = channel.alloc().buffer();
        try {
            start(channel, tool, run);
            return reply.writeInt(port);
        } catch (CommandFailure | IOException e) {
            ByteBufUtil.writeUtf8(reply.writeInt(0), String.valueOf(e.getMessage()));
            return reply;
        }
    }

    private synchronized void start(Channel channel, PerfTool tool, ToolRun run) throws IOException {
        if (!allowed.contains(tool)) {
            throw new CommandFailure("the server runs no " + tool + " for clients: start it with --with " + tool);
        }
        String unfit = tool.unfit(run, 0, hasDevice);
        if (unfit != null) {
            throw new CommandFailure(unfit);
        }
        Process last = running;
        if (last != null && last.isAlive() && !channel.equals(owner)) {
            throw new CommandFailure("the server runs a program for another client; try again later");
        }
        stop();
        running = new ToolProcess(tool, run, hasDevice).start(port, null, ProcessBuilder.Redirect.DISCARD);
        owner = channel;
        channel.closeFuture().addListener(closed -> end(channel));
    }

    private synchronized void end(Channel channel) {
        if (channel.equals(owner)) {
            owner = null;
            stop();
        }
    }

    private synchronized void stop() {
        Process process = running;
        if (process != null) {
            running = null;
            process.destroyForcibly();
        }
    }
}
