package org.verbena.samples;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.verbena.samples.command.Execution;
import org.verbena.samples.command.RootCommand;
import org.verbena.samples.echo.EchoClient;
import org.verbena.samples.echo.EchoServer;
import org.verbena.samples.files.RecvFile;
import org.verbena.samples.files.SendFile;
import org.verbena.samples.grpc.GrpcClient;
import org.verbena.samples.grpc.GrpcServer;
import org.verbena.samples.http.HttpClient;
import org.verbena.samples.http.HttpServer;
import org.verbena.samples.kv.KvClient;
import org.verbena.samples.kv.KvServer;
import org.verbena.samples.table.TableClient;
import org.verbena.samples.table.TableServer;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** The samples as one program. The {@code verbena} command has them too. */
@Command(name = "samples", description = "Programs that show how Verbena is used.")
public final class Samples extends RootCommand {
    /** All samples, in the groups that the help has. */
    public static final Map<String, List<String>> GROUPS = groups();

    private static Map<String, List<String>> groups() {
        Map<String, List<String>> groups = new LinkedHashMap<>();
        groups.put(
                "Messages and one-sided operations",
                List.of("echo-server", "echo-client", "table-server", "table-client"));
        groups.put("Files and values", List.of("recv-file", "send-file", "kv-server", "kv-client"));
        groups.put("gRPC and HTTP", List.of("grpc-server", "grpc-client", "http-server", "http-client"));
        return Collections.unmodifiableMap(groups);
    }

    private Samples() {
        super(GROUPS);
    }

    /**
     * Runs a sample and ends the JVM with its exit code.
     *
     * @param args a sample and its options
     */
    public static void main(String[] args) {
        System.exit(run(args));
    }

    /**
     * Runs a sample.
     *
     * @param args a sample and its options
     * @return its exit code: 0 success, 1 failure, 2 wrong usage
     */
    public static int run(String... args) {
        return Execution.run(commandLine(args), args);
    }

    /**
     * Creates the command line that these arguments need.
     *
     * @param args a sample and its options
     * @return a new command line, which has not run
     */
    public static CommandLine commandLine(String... args) {
        return new Samples().commandLineFor(args);
    }

    /**
     * Finds a sample. A switch, because it loads only the requested class.
     *
     * @param name its name
     * @return its class
     * @throws IllegalArgumentException if there is none
     */
    public static Class<?> named(String name) {
        return switch (name) {
            case "echo-server" -> EchoServer.class;
            case "echo-client" -> EchoClient.class;
            case "table-server" -> TableServer.class;
            case "table-client" -> TableClient.class;
            case "send-file" -> SendFile.class;
            case "recv-file" -> RecvFile.class;
            case "kv-server" -> KvServer.class;
            case "kv-client" -> KvClient.class;
            case "grpc-server" -> GrpcServer.class;
            case "grpc-client" -> GrpcClient.class;
            case "http-server" -> HttpServer.class;
            case "http-client" -> HttpClient.class;
            default -> throw new IllegalArgumentException(name);
        };
    }

    @Override
    protected Class<?> command(String name) {
        return named(name);
    }
}
