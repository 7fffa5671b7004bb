package org.verbena.bench.stack;

import java.util.concurrent.TimeUnit;
import org.verbena.bench.JavaProcess;

/** One layer in a JVM of its own: warms it up, and prints a line for each window. */
final class Child {
    /** How the lines begin: window, ns, bytes of the heap. */
    static final String RESULT = "RESULT ";

    /** gRPC has far more code to compile. */
    private static final int WARM_UPS_OF_GRPC = 3;

    private static final int SECONDS_TO_END = 60;

    private Child() {}

    public static void main(String... arguments) {
        try {
            run(
                    new Cell(arguments[0], arguments[1]),
                    Double.parseDouble(arguments[2]),
                    Double.parseDouble(arguments[3]));
            System.out.println("DONE");
            System.exit(0);
        } catch (Throwable thrown) {
            thrown.printStackTrace();
            System.out.println(JavaProcess.FAILED + thrown);
            System.exit(1);
        }
    }

    private static void run(Cell cell, double warmUp, double seconds) throws Exception {
        Layer layer = cell.open();
        int warmUps = cell.name().equals("grpc") ? WARM_UPS_OF_GRPC : 1;
        for (int window : Stack.WINDOWS) {
            measure(layer, window, warmUps * warmUp / Stack.WINDOWS.length);
        }
        for (int window : Stack.WINDOWS) {
            measure(layer, window, warmUps * warmUp / Stack.WINDOWS.length / 2);
            Series.Cost cost = measure(layer, window, seconds);
            System.out.println(RESULT + window + " " + cost.nanos() + " " + cost.heapBytes());
        }
    }

    private static Series.Cost measure(Layer layer, int window, double seconds) throws Exception {
        Series series = new Series(window, seconds);
        layer.start(series);
        return series.cost().get(SECONDS_TO_END + (long) seconds, TimeUnit.SECONDS);
    }
}
