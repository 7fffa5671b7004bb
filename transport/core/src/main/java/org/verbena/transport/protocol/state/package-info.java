/**
 * What all parts of a connection share: its phase, its peer, its counters and its events. Begin with {@link
 * org.verbena.transport.protocol.state.Lifecycle}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol.state;
