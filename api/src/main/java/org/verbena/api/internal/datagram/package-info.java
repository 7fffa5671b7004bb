/**
 * The parts of a datagram channel: binding and connecting, recipients and their look-up, sends, receives, groups. They
 * use the channel through interfaces of their own. May use {@code internal.channel}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.datagram;
