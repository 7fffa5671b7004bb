/**
 * Queue pairs that are connected by hand, without rdma_cm: both ends exchange their numbers and addresses in a way
 * of the program's choice, and so with programs that have a format of their own.
 *
 * <p>Begin with {@link org.verbena.api.queuepair.QueuePairExchangeAddress}, to which a channel or client connects. This
 * package uses nothing of this module but threads of its own ({@code internal.loop}), so that channels may use it.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.queuepair;
