/** Calls of the C library without a counterpart in Java: sealed memory files, and mapping them. */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.shm.ffm;
