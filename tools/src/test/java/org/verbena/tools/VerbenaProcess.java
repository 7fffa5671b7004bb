package org.verbena.tools;

import java.io.IOException;
import java.util.List;
import org.verbena.samples.ServerProcess;

/** The {@code verbena} command in a JVM of its own. */
public final class VerbenaProcess {
    private VerbenaProcess() {}

    public static List<String> commandLine(String... command) {
        return ServerProcess.commandLine(Main.class, command);
    }

    /** Starts a server, and returns when it listens. */
    public static ServerProcess startServer(String... command) throws IOException {
        return new ServerProcess(new ProcessBuilder(commandLine(command)));
    }
}
