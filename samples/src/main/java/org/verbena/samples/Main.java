package org.verbena.samples;

/** The verbena command. */
public final class Main {
    private Main() {}

    /**
     * Runs it.
     *
     * @param args a command and its options
     */
    public static void main(String[] args) {}
}
