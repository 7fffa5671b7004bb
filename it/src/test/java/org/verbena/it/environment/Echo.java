package org.verbena.it.environment;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;

/** The program that is run: echoes of small and large messages on each provider that the arguments name. */
public final class Echo {
    private static final int[] SIZES = {0, 1, 64, 4096, 200_000};
    private static final int ROUNDS = 20;

    private Echo() {}

    /** Prints a line for each provider, that all came back or what was thrown; ends with 1 if something was. */
    public static void main(String[] providers) {
        boolean failed = false;
        for (String provider : providers) {
            try {
                echo(provider);
                System.out.println(provider + " echoes");
            } catch (Throwable thrown) {
                failed = true;
                thrown.printStackTrace();
                System.out.println(
                        provider + " threw " + thrown.getClass().getSimpleName() + ": " + thrown.getMessage());
            }
        }
        System.exit(failed ? 1 : 0);
    }

    /** Serves and asks in this process. */
    public static void echo(String provider) throws Exception {
        MessageHandler handler = MessageHandler.ofBytes((exchange, message) -> exchange.reply(message));
        try (RdmaServer server = RdmaServer.builder().provider(provider).bind("127.0.0.1", 0, handler);
                RdmaClient client = RdmaClient.builder().provider(provider).connect("127.0.0.1", server.port())) {
            for (int round = 0; round < ROUNDS; round++) {
                for (int size : SIZES) {
                    byte[] sent = new byte[size];
                    Arrays.fill(sent, (byte) (round + 1));
                    byte[] echoed = client.request(sent).get(30, TimeUnit.SECONDS);
                    if (!Arrays.equals(sent, echoed)) {
                        throw new AssertionError("other bytes came back of " + size);
                    }
                }
            }
        }
    }
}
