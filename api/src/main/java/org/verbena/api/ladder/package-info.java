/**
 * How a client chooses among several ways to one server: the rungs of a ladder, what each must be able to do, and
 * which one was taken. These are values; {@code RdmaLadder}, {@code LadderSocketChannel} and {@code RdmaClient} in
 * {@code org.verbena.api} climb.
 *
 * <p>Begin with {@link org.verbena.api.ladder.LadderOptions}, then {@link org.verbena.api.ladder.LadderResult}. May
 * use the counters ({@code api.internal.stat}) and what is below this module, so that channels and clients may name
 * it.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.ladder;
