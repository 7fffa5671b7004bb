package org.verbena.api;

import java.time.Duration;

/** A server that answers a request when it has read a line from its standard input, and waits to be terminated. */
final class TerminatedServer {
    private TerminatedServer() {}

    /** The provider. */
    public static void main(String[] arguments) throws InterruptedException {
        RdmaServer server = RdmaServer.builder()
                .provider(arguments[0])
                .virtualThreads(true)
                .bind("127.0.0.1", 0, MessageHandler.ofBytes((exchange, message) -> {
                    say("begun");
                    if (System.in.read() >= 0) {
                        exchange.reply(message);
                    }
                }))
                .closeOnSigterm(Duration.ofMinutes(1));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> say("ending")));
        say(String.valueOf(server.port()));
        Thread.currentThread().join(); // for ever
    }

    /** The log has other lines. */
    private static void say(String word) {
        System.out.println("> " + word);
    }
}
