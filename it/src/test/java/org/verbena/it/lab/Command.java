package org.verbena.it.lab;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.verbena.tools.Main;

/** What a command of {@code verbena} printed, run in this JVM. */
record Command(int exitCode, String out, String err) {
    /**
     * Runs it to its end. Whatever else prints meanwhile is in the output too.
     *
     * @param arguments the command and its options
     */
    static Command run(String... arguments) {
        PrintStream out = System.out;
        PrintStream err = System.err;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ByteArrayOutputStream complained = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(complained, true, StandardCharsets.UTF_8));
        int exitCode;
        try {
            exitCode = Main.run(arguments);
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        return new Command(
                exitCode, printed.toString(StandardCharsets.UTF_8), complained.toString(StandardCharsets.UTF_8));
    }
}
