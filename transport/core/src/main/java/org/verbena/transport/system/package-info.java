/** What this library asks of the operating system besides sockets. Exported to this library's modules alone. */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.system;
