package org.verbena.transport.spi;

import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Supplier;

/**
 * The executions of a fuzz test. The n-th has the seed that is printed plus n: a failure names it, and {@code
 * -Dverbena.fuzz.seed=} with one execution repeats it.
 */
public final class FuzzLoop {
    private final String what;
    private final String property;
    private final long executions;

    /** One execution. */
    @FunctionalInterface
    public interface Execution {
        void run(long seed) throws Exception;
    }

    /**
     * Takes the number of executions from a property.
     *
     * @param what is fuzzed, in words
     * @param property behind {@code verbena.fuzz.}
     * @param usual the number without the property
     */
    public FuzzLoop(String what, String property, long usual) {
        this.what = what;
        this.property = "verbena.fuzz." + property;
        executions = Long.getLong(this.property, usual);
    }

    public long executions() {
        return executions;
    }

    /** Prints the seed of a run and returns it. */
    public long seed() {
        long seed =
                Long.getLong("verbena.fuzz.seed", ThreadLocalRandom.current().nextLong());
        System.out.println("fuzzing " + what + ": -D" + property + "=" + executions + " -Dverbena.fuzz.seed=" + seed);
        return seed;
    }

    /**
     * Runs them all.
     *
     * @param execution run with each seed
     * @param figures what to print at the end
     */
    public void run(Execution execution, Supplier<String> figures) {
        long seed = seed();
        long start = System.nanoTime();
        for (long i = 0; i < executions; i++) {
            try {
                execution.run(seed + i);
            } catch (Throwable e) {
                throw new AssertionError(
                        "execution " + i + ": -D" + property + "=1 -Dverbena.fuzz.seed=" + (seed + i) + ": " + e, e);
            }
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        System.out.printf(
                "fuzzed %s: %d executions in %.1f s, %.0f a second; %s%n",
                what, executions, seconds, executions / seconds, figures.get());
    }
}
