/** Sockets through io_uring: a queue pair that the kernel offers. Not exported. */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.soft.uring;
