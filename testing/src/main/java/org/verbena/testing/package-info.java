/**
 * A test kit for programs that use Verbena, for tests that need no network, do not wait, and give the same result on
 * any machine.
 *
 * <ul>
 *   <li>{@link org.verbena.testing.InProcessProvider} connects clients and servers within one process.
 *   <li>{@link org.verbena.testing.TestTime} is their time, which stands still until the test moves it.
 *   <li>{@link org.verbena.testing.Faults} breaks what is connected.
 * </ul>
 *
 * <p>A test with all three:
 *
 * <pre>{@code
 * TestTime time = new TestTime();
 * try (RdmaEventLoopGroup loops = new RdmaEventLoopGroup(time.provider(), 1);
 *         RdmaServer server = RdmaServer.builder().group(loops).bind("127.0.0.1", 0, handler);
 *         RdmaClient client = RdmaClient.builder().group(loops).connect("127.0.0.1", server.port());
 *         Faults faults = Faults.at(server.port())) {
 *     faults.drop();
 *     faults.refuse(true);
 *     CompletableFuture<byte[]> reply = client.request(question, Duration.ofSeconds(30));
 *     time.advance(Duration.ofSeconds(30));
 *     assertTrue(reply.isCompletedExceptionally());
 * }
 * }</pre>
 */
package org.verbena.testing;
