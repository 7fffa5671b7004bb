package org.verbena.transport.protocol.sending;

/** The reason why the first waiting operation cannot be posted. */
public enum Obstacle {
    NONE("a flush"),
    /** The peer has granted nothing. */
    CREDIT("credit"),
    /** The send queue is full, or as many reads or rendezvous are under way as may be. */
    SLOT("a slot"),
    /** There is no registered memory to send a copy from. */
    MEMORY("memory"),
    /** It is the turn of other connections of the loop. */
    BUDGET("its turn among the connections of its loop");

    private final String words;

    Obstacle(String words) {
        this.words = words;
    }

    /** What has to arrive. */
    public String inWords() {
        return words;
    }
}
