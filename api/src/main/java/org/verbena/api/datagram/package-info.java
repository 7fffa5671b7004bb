/**
 * Datagrams over queue pairs of type UD: a Netty {@code DatagramChannel} for many peers and multicast groups. Devices
 * have them, except iWARP devices; soft and shared memory have none.
 *
 * <p>Begin with {@link org.verbena.api.datagram.RdmaDatagramChannel}. May use {@code org.verbena.api} for event
 * loops and options, and what is internal. Nothing else in this module names it.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.datagram;
