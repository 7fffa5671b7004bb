/**
 * The message protocol over a reliable connection: it keeps the boundaries and the order of messages of any size, and a
 * send always finds a posted receive. The wire format is in {@code docs/protocol.md}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol;
