package org.verbena.bench.peers;

import java.nio.file.Path;
import java.util.List;

/**
 * One way to carry messages between two JVMs. An implementation is one class with a public no-argument
 * constructor that does nothing (it also runs in the orchestrator, only to ask for {@link #jvmFlags()}).
 */
public interface Contender {

    /**
     * Starts an echo server in this JVM and returns once a client can connect to it. The server sends every
     * message back whole and unchanged. An exception here marks the contender as unavailable.
     *
     * @param scratch an empty folder for socket files and the like; the harness deletes it afterwards
     */
    Server startServer(Path scratch) throws Exception;

    /** Connects this JVM (another one) to the server at {@link Server#address()}. */
    Client connect(String address) throws Exception;

    /** JVM flags that both processes of this contender need. */
    default List<String> jvmFlags() {
        return List.of();
    }

    interface Server extends AutoCloseable {
        /** Whatever {@link #connect} needs, on one line. */
        String address();
    }

    interface Client extends AutoCloseable {
        /**
         * Sends a message for every sequence number that {@link Load#next()} gives, reports every echo to
         * {@link Load#echoed}, and returns when {@link Load#finished()}. Called several times, one after another.
         */
        void run(Load load) throws Exception;
    }
}
