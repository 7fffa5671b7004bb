/**
 * The message protocol: what two ends say to each other over a reliable connection so that messages of any size keep their
 * boundaries and order, and no send ever finds a receiver that is not ready. The wire format is in {@code docs/protocol.md}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol;
