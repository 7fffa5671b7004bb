/**
 * What goes over the wire: the format, the arithmetic of grants and the state in headers. Begin with {@link
 * org.verbena.transport.protocol.wire.Wire}; docs/protocol.md describes the same. Uses none of the other packages.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.protocol.wire;
