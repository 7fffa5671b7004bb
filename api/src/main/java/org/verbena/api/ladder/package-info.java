/**
 * How a client chooses among several transports to one server: the rungs of a ladder, their required capabilities, and
 * which one was chosen. These are values; {@code RdmaLadder}, {@code LadderSocketChannel} and {@code RdmaClient} in
 * {@code org.verbena.api} use them to connect.
 *
 * <p>Begin with {@link org.verbena.api.ladder.LadderOptions}, then {@link org.verbena.api.ladder.LadderResult}. May use
 * only the counters ({@code api.internal.stat}) and the modules below, so that channels and clients may use it.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.ladder;
