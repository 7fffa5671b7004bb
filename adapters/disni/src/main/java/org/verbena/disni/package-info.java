/** What the native methods of DiSNI do, on {@code verbs} and {@code cm}. For the classes of DiSNI's names only. */
@org.jspecify.annotations.NullMarked
package org.verbena.disni;
