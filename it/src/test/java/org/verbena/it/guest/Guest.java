package org.verbena.it.guest;

import java.nio.file.Path;
import java.util.List;

/** Where the lab's tests run. */
interface Guest {
    /**
     * Does once what all starts need.
     *
     * @throws UnavailableException if there can be no lab here
     */
    default void prepare() throws UnavailableException {}

    /**
     * Starts one; several may run at a time.
     *
     * @param exchange its folder, into which {@link GuestMain#EVENTS} shall come, and the tests
     * @param isAlone whether no other runs beside it
     */
    Run start(Path exchange, boolean isAlone);

    /** A guest that was started. */
    interface Run extends AutoCloseable {
        boolean isAlive();

        /** One sentence about how it ended. */
        String howItEnded();

        /** The last lines of its console. */
        List<String> consoleTail();

        /** Ends it if it still runs, whatever it does. */
        @Override
        void close();
    }

    /** There can be no lab here; the message is the reason. */
    final class UnavailableException extends Exception {
        private static final long serialVersionUID = 1;

        UnavailableException(String reason) {
            super(reason);
        }
    }
}
