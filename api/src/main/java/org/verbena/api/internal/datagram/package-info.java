/**
 * The parts of a datagram channel: recipients and their look-up, sends, receives, groups. They know the channel by
 * interfaces of their own, and use nothing else of this module.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.datagram;
