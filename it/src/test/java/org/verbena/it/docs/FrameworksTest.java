package org.verbena.it.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.verbena.it.guest.ArrowClasses;

/** What docs/frameworks.md shows runs as it stands, and changes no more lines of a program than the page says. */
@Timeout(120)
class FrameworksTest {
    private static final int MAX_CHANGED_LINES = 5;

    /** The section whose snippet needs another protobuf than this JVM has. */
    private static final String ARROW = "Arrow Flight";

    @TempDir
    private Path out;

    /** A section, what its snippet takes for granted, and what a program may do with what it has made. */
    static List<Arguments> sections() {
        return List.of(
                Arguments.of("Vert.x", "", """
                        check(server.compose(listening -> client.request(
                                        io.vertx.core.http.HttpMethod.GET, listening.actualPort(), "127.0.0.1", "/"))
                                .compose(request -> request.send().compose(response -> response.body()))
                                .toCompletionStage().toCompletableFuture().get().toString().equals("hello"));
                        vertx.close().toCompletionStage().toCompletableFuture().get();
                        """),
                Arguments.of("Reactor Netty", "", """
                        check(client.host("127.0.0.1").port(server.port()).get()
                                .responseContent().aggregate().asString().block().equals("hello"));
                        server.disposeNow();
                        loops.disposeLater(java.time.Duration.ZERO, java.time.Duration.ofSeconds(10)).block();
                        """),
                Arguments.of("Spring WebFlux", "", """
                        resources.start();
                        check(resources.getLoopResources() instanceof RdmaLoopResources);
                        resources.destroy();
                        """),
                Arguments.of("Blocking sockets", "", """
                        try (server; client; Socket accepted = server.accept()) {
                            client.getOutputStream().write(7);
                            check(accepted.getInputStream().read() == 7);
                        }
                        """),
                Arguments.of("JGroups", "", """
                        cluster.connect("cluster");
                        check(cluster.getView().size() == 1);
                        cluster.close();
                        """),
                Arguments.of("RSocket", "", """
                        check(client.requestResponse(io.rsocket.util.DefaultPayload.create("hello"))
                                .block().getDataUtf8().equals("hello"));
                        client.dispose();
                        client.onClose().block();
                        server.dispose();
                        """),
                Arguments.of("Apache Ratis", """
                        static org.apache.ratis.protocol.RaftGroupId groupId =
                                org.apache.ratis.protocol.RaftGroupId.randomId();
                        static org.apache.ratis.statemachine.StateMachine machine =
                                new org.apache.ratis.statemachine.impl.BaseStateMachine();
                        static java.io.File folder = org.assertj.core.util.Files.newTemporaryFolder();
                        """, """
                        server.start();
                        check(client.io().send(org.apache.ratis.protocol.Message.valueOf("hello")).isSuccess());
                        client.close();
                        server.close();
                        org.apache.ratis.util.FileUtils.deleteFully(folder);
                        """),
                Arguments.of(ARROW, """
                        static org.apache.arrow.memory.BufferAllocator memory =
                                new org.apache.arrow.memory.RootAllocator();
                        static java.util.concurrent.ExecutorService executor =
                                java.util.concurrent.Executors.newCachedThreadPool();
                        static org.apache.arrow.flight.FlightProducer producer =
                                new org.apache.arrow.flight.NoOpFlightProducer() {
                                    @Override
                                    public void listActions(
                                            CallContext context,
                                            StreamListener<org.apache.arrow.flight.ActionType> listener) {
                                        listener.onNext(new org.apache.arrow.flight.ActionType("hello", ""));
                                        listener.onCompleted();
                                    }
                                };
                        """, """
                        check(client.listActions().iterator().next().getType().equals("hello"));
                        client.close();
                        channel.shutdownNow().awaitTermination(10, java.util.concurrent.TimeUnit.SECONDS);
                        server.shutdownNow().awaitTermination(10, java.util.concurrent.TimeUnit.SECONDS);
                        executor.shutdown();
                        memory.close();
                        """));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("sections")
    void runs(String section, String given, String use) throws Exception {
        Matcher found = Pattern.compile("\n## " + section + "\n(?:(?!\n## ).)*?```java\n(.*?)```", Pattern.DOTALL)
                .matcher(Files.readString(SnippetsTest.root().resolve("docs/frameworks.md")));
        assertThat(found.find()).as(section).isTrue();
        String snippet = found.group(1);
        assertThat(snippet.lines().filter(line -> line.contains("// was") || line.contains("// new")))
                .hasSizeBetween(1, MAX_CHANGED_LINES);

        String code = """
                %s
                public class Program implements Runnable {
                    %s
                    static void check(boolean holds) {
                        if (!holds) {
                            throw new AssertionError("the program does not work");
                        }
                    }
                    static void program() throws Exception {
                        %s
                        %s
                    }
                    public void run() {
                        try {
                            program();
                        } catch (Exception e) {
                            throw new AssertionError(e);
                        }
                    }
                }
                """.formatted(
                        lines(snippet, true),
                        given,
                        lines(snippet, false).replace("7471", freePort()).replace("\"host\"", "\"127.0.0.1\""),
                        use);
        SnippetsTest.compile(out, "Program.java", code);
        if (section.equals(ARROW)) {
            try (ArrowClasses classes = new ArrowClasses(out)) {
                classes.run("Program");
            }
            return;
        }
        try (URLClassLoader loader =
                new URLClassLoader(new URL[] {out.toUri().toURL()}, getClass().getClassLoader())) {
            ((Runnable) loader.loadClass("Program").getConstructor().newInstance()).run();
        }
    }

    private static String lines(String code, boolean imports) {
        return code.lines()
                .filter(line -> line.startsWith("import ") == imports)
                .collect(Collectors.joining("\n"));
    }

    /**
     * A port that nobody has, below those that the system gives to programs that ask for any: one of those could be
     * another program's by the time the snippet is compiled.
     */
    static String freePort() throws Exception {
        while (true) {
            int port = ThreadLocalRandom.current().nextInt(20_000, 32_000);
            try (ServerSocket free = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return String.valueOf(free.getLocalPort());
            } catch (BindException taken) {
                continue; // another one
            }
        }
    }
}
