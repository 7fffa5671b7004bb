package org.verbena.samples.command;

import org.verbena.transport.stat.StatFile;

/** Ends the samples' servers with success on SIGINT and SIGTERM, which are the usual way to stop one. */
public final class ServerSignals {
    private ServerSignals() {}

    /**
     * From now on SIGINT and SIGTERM end the process with exit code 0. The kernel then closes its connections and
     * devices, and the peers see the disconnect.
     */
    public static void endWithZero() {
        endWithZero(() -> {});
    }

    /**
     * The same, when the given task has run.
     *
     * @param drain ends what is under way, within a time of its own
     */
    public static void endWithZero(Runnable drain) {
        Thread main = Thread.currentThread();
        Runtime.getRuntime()
                .addShutdownHook(new Thread(
                        () -> {
                            // If the command itself called System.exit, keep its exit code.
                            for (StackTraceElement frame : main.getStackTrace()) {
                                if (frame.getMethodName().equals("exit")
                                        && frame.getClassName().equals("java.lang.System")) {
                                    return;
                                }
                            }
                            try {
                                drain.run();
                            } finally {
                                StatFile.removeOwn();
                                Runtime.getRuntime().halt(0);
                            }
                        },
                        "signal"));
    }
}
