package org.verbena.bench.soak;

import java.util.concurrent.CountDownLatch;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaEventLoopGroup;

/** A client that {@link Report} kills while it talks over several connections. */
final class ReportClient {
    static final String TALKING = "talking";

    private static final int CONNECTIONS = 4;

    private ReportClient() {}

    /** Provider, host and port. */
    public static void main(String[] arguments) throws Exception {
        RdmaEventLoopGroup group = new RdmaEventLoopGroup(arguments[0], 1);
        CountDownLatch talking = new CountDownLatch(CONNECTIONS);
        for (int i = 0; i < CONNECTIONS; i++) {
            RdmaClient client = RdmaClient.builder().group(group).connect(arguments[1], Integer.parseInt(arguments[2]));
            int size = 10 << (4 * i); // from what goes in one frame to what the server has to gather
            Thread.ofPlatform().start(() -> {
                while (true) {
                    client.request(new byte[size]).join();
                    talking.countDown();
                }
            });
        }
        talking.await();
        System.out.println(TALKING);
        Thread.currentThread().join();
    }
}
