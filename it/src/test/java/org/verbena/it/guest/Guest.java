package org.verbena.it.guest;

import java.nio.file.Path;
import java.util.List;

/** Where the lab's tests run. */
interface Guest {
    /**
     * Starts it.
     *
     * @param exchange the folder with {@link GuestMain#TESTS}, into which {@link GuestMain#EVENTS} shall come
     * @throws UnavailableException if there can be no lab here
     */
    Run start(Path exchange) throws UnavailableException;

    /** A guest that was started. */
    interface Run extends AutoCloseable {
        boolean isAlive();

        /** One sentence about how it ended. */
        String howItEnded();

        /** The last lines of its console. */
        List<String> consoleTail();

        /** Ends it if it still runs. */
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
