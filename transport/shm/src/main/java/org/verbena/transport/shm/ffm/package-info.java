/** Calls of the C library that Java has nothing for: sealed memory files, and mapping them. */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.shm.ffm;
