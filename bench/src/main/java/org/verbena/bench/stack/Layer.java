package org.verbena.bench.stack;

/** Both ends of an echo through one layer and all below it, on one thread. */
interface Layer {
    /** Bytes of a message. */
    int MESSAGE_BYTES = 64;

    /**
     * Connects the two ends.
     *
     * @throws Exception they cannot be
     */
    void open() throws Exception;

    /**
     * Echoes messages from now on, {@link Series#window} of them out at a time, until the series is over.
     *
     * @param series gets each echo, on the thread of the two ends
     */
    void start(Series series);
}
