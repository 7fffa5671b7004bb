package org.verbena.api.ladder;

import io.netty.channel.Channel;
import io.netty.util.AttributeKey;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Which rung of a ladder a client uses, and why none of the better ones. The pipeline of the connection gets it as a
 * user event, before {@code channelActive}.
 *
 * @param address that was connected to
 * @param rung {@code verbs}, {@code soft} ..., or {@code tcp}
 * @param passed the better rungs, the best first; empty if there are none
 * @param attempts the rungs that were tried, in the order in which they began; the chosen one is among them
 */
public record LadderResult(InetSocketAddress address, String rung, List<Passed> passed, List<Attempt> attempts) {

    /** The attribute of channels, {@code verbena.ladder}. */
    public static final AttributeKey<LadderResult> ATTRIBUTE = AttributeKey.valueOf("verbena.ladder");

    /** Copies the lists. */
    public LadderResult {
        passed = List.copyOf(passed);
        attempts = List.copyOf(attempts);
    }

    /**
     * A rung that was tried.
     *
     * @param rung its name
     * @param began how long after the call
     * @param took until it was connected, had failed, or was given up for the one that is used
     * @param failure why it is not connected, as a phrase; empty if it is
     */
    public record Attempt(String rung, Duration began, Duration took, String failure) {}

    /**
     * A rung that was passed over.
     *
     * @param rung its name
     * @param reason why, as a phrase
     */
    public record Passed(String rung, String reason) {

        @Override
        public String toString() {
            return rung + ": " + reason;
        }
    }

    /**
     * Returns the result that a channel belongs to. Any thread.
     *
     * @param channel any channel
     * @return null for one that was not connected by a ladder
     */
    public static @Nullable LadderResult of(Channel channel) {
        return channel.attr(ATTRIBUTE).get();
    }

    /**
     * Returns why this rung is used.
     *
     * @return a phrase with the reasons of all better ones
     */
    public String reason() {
        return passed.isEmpty()
                ? "the first rung of the ladder"
                : "the best rung of the ladder that connected; "
                        + passed.stream().map(Passed::toString).collect(Collectors.joining("; "));
    }
}
