/** Structs, constants and function handles of librdmacm. Only {@code MemorySegment} is seen above this package. */
package org.verbena.cm.ffm;
