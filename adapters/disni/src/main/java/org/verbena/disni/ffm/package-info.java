/** C's functions that only DiSNI wants. */
@org.jspecify.annotations.NullMarked
package org.verbena.disni.ffm;
