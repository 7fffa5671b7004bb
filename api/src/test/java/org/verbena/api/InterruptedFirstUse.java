package org.verbena.api;

import org.verbena.transport.ConnectionException;

/**
 * A program whose interrupted thread is the first to use this library. Its exit code says whether that harms nothing.
 */
final class InterruptedFirstUse {
    private InterruptedFirstUse() {}

    /** The provider. */
    public static void main(String[] arguments) throws Exception {
        String provider = arguments[0];
        Thread.currentThread().interrupt();
        refused(() -> RdmaServer.builder().provider(provider).bind("127.0.0.1", 0, (exchange, message) -> {}));
        refused(() -> RdmaClient.builder().provider(provider).connect("localhost", 7471));
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(provider, 1);
        require(Thread.interrupted(), "the thread stays interrupted");
        try (group;
                RdmaServer server = RdmaServer.builder()
                        .group(group)
                        .bind("127.0.0.1", 0, MessageHandler.ofBytes((exchange, message) -> exchange.reply(message)));
                RdmaClient client = RdmaClient.builder().provider(provider).connect("127.0.0.1", server.port())) {
            require(client.request(new byte[20_000]).get().length == 20_000, "a reply");
            require(group.providerStatistics().openConnections() == 2, "two ends");
        }
    }

    private static void refused(Runnable use) {
        try {
            use.run();
        } catch (ConnectionException said) {
            require(said.getCause() instanceof InterruptedException, "it says that the thread is interrupted");
            return;
        }
        throw new AssertionError("it was not refused");
    }

    private static void require(boolean fact, String what) {
        if (!fact) {
            throw new AssertionError(what);
        }
    }
}
