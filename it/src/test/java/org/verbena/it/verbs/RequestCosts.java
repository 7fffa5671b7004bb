package org.verbena.it.verbs;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.verbena.api.MessageHandler;
import org.verbena.api.RdmaClient;
import org.verbena.api.RdmaServer;
import org.verbena.transport.CompletionLoopOptions;

/** A process with both ends of a client's connection over a device in memory. Says what requests cost the device. */
@SuppressWarnings("restricted") // loads and calls a library
final class RequestCosts {
    private static final int SECONDS = 60;

    /** These have the ends agree on everything, and make what is made for the first of them. */
    private static final int FIRST = 64;

    /** What a loop does while it waits takes no calls. */
    private static final CompletionLoopOptions SLEEPING = new CompletionLoopOptions(
            0,
            CompletionLoopOptions.DEFAULTS.maxCompletionsPerTurn(),
            CompletionLoopOptions.DEFAULTS.completionQueueDepth());

    private static SymbolLookup library;

    private RequestCosts() {}

    /**
     * Prints {@code costs AT_A_TIME POSTS COMPLETIONS POLLS ARMS CALLS} for each number of requests at a time: calls
     * that post sends, completions of sends, calls that poll and that arm, and native calls of all kinds, of both ends.
     *
     * @param arguments library, folder of the device in sysfs, how many requests, and how many at a time
     */
    public static void main(String... arguments) {
        try {
            measure(arguments);
            System.exit(0);
        } catch (Throwable thrown) {
            thrown.printStackTrace();
            System.exit(1); // the loops would go on
        }
    }

    private static void measure(String... arguments) throws Throwable {
        library = SymbolLookup.libraryLookup(arguments[0], Arena.global());
        call("stub_reset");
        call("stub_link", 1);
        if (call("stub_personality", "mlx5", arguments[1]) != 0) {
            throw new IllegalStateException("it has no mlx5");
        }
        MessageHandler echo = MessageHandler.ofBytes((exchange, message) -> exchange.reply(message));
        try (RdmaServer server = RdmaServer.builder()
                        .provider("verbs")
                        .loopOptions(SLEEPING)
                        .bind("10.0.0.1", 0, echo);
                RdmaClient client = RdmaClient.builder()
                        .provider("verbs")
                        .loopOptions(SLEEPING)
                        .connect("10.0.0.1", server.port())) {
            int requests = Integer.parseInt(arguments[2]);
            request(client, FIRST, FIRST);
            for (int i = 3; i < arguments.length; i++) {
                int atATime = Integer.parseInt(arguments[i]);
                int[] before = counts();
                request(client, requests, atATime);
                int[] after = counts();
                System.out.println("costs " + atATime + " "
                        + IntStream.range(0, after.length)
                                .mapToObj(at -> String.valueOf(after[at] - before[at]))
                                .collect(Collectors.joining(" ")));
            }
        }
    }

    private static int[] counts() throws Throwable {
        String[] calls = ((MemorySegment) Linker.nativeLinker()
                        .downcallHandle(
                                library.findOrThrow("stub_all_calls"), FunctionDescriptor.of(ValueLayout.ADDRESS))
                        .invokeWithArguments())
                .reinterpret(4096)
                .getString(0)
                .split(" ");
        int[] counts = {call("stub_send_posts"), call("stub_send_completions"), 0, 0, 0};
        for (int i = 0; i < calls.length; i += 2) {
            int count = Integer.parseInt(calls[i + 1]);
            counts[2] += calls[i].equals("poll_cq") ? count : 0;
            counts[3] += calls[i].equals("req_notify_cq") ? count : 0;
            counts[4] += count;
        }
        return counts;
    }

    private static void request(RdmaClient client, int requests, int atATime) throws Exception {
        byte[] message = new byte[64];
        for (int i = 0; i < requests; i += atATime) {
            CompletableFuture.allOf(IntStream.range(0, atATime)
                            .mapToObj(at -> client.request(message))
                            .toArray(CompletableFuture[]::new))
                    .get(SECONDS, TimeUnit.SECONDS);
        }
    }

    private static int call(String function, Object... arguments) throws Throwable {
        Object[] given = new Object[arguments.length];
        MemoryLayout[] layouts = new MemoryLayout[arguments.length];
        for (int i = 0; i < arguments.length; i++) {
            boolean isText = arguments[i] instanceof String;
            given[i] = isText ? Arena.global().allocateFrom((String) arguments[i]) : arguments[i];
            layouts[i] = isText ? ValueLayout.ADDRESS : ValueLayout.JAVA_INT;
        }
        return (int) Linker.nativeLinker()
                .downcallHandle(library.findOrThrow(function), FunctionDescriptor.of(ValueLayout.JAVA_INT, layouts))
                .invokeWithArguments(given);
    }
}
