/** What this library asks of the operating system besides sockets. Exported only to this library's modules. */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.system;
