package org.verbena.bench.peers;

import java.util.Arrays;
import java.util.List;
import java.util.function.ToDoubleFunction;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;

/** What one contender did with one workload in one round. Times in microseconds. */
record Result(
        double p50,
        double p90,
        double p99,
        double max,
        double perSecond,
        double megabytes,
        double allocated,
        double cores,
        double others) {

    static Result parse(String line) {
        double[] v =
                Arrays.stream(line.split(" ")).mapToDouble(Double::parseDouble).toArray();
        return new Result(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]);
    }

    String toLine() {
        return DoubleStream.of(p50, p90, p99, max, perSecond, megabytes, allocated, cores, others)
                .mapToObj(Double::toString)
                .collect(Collectors.joining(" "));
    }

    /** CPU time of both processes for a million messages, in seconds. */
    double cpuSecondsPerMillion() {
        return cores / perSecond * 1e6;
    }

    /** Each figure's median over the rounds. */
    static Result median(List<Result> rounds) {
        return new Result(
                median(rounds, Result::p50),
                median(rounds, Result::p90),
                median(rounds, Result::p99),
                median(rounds, Result::max),
                median(rounds, Result::perSecond),
                median(rounds, Result::megabytes),
                median(rounds, Result::allocated),
                median(rounds, Result::cores),
                median(rounds, Result::others));
    }

    /** One figure's median over the rounds. */
    static double median(List<Result> rounds, ToDoubleFunction<Result> figure) {
        return median(rounds.stream().mapToDouble(figure).sorted().toArray());
    }

    /** The median of at least one figure. */
    static double median(double[] sorted) {
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
}
