/**
 * Event loops, what the loops of a group have in common, and futures that refuse to be waited for on a loop. May use
 * {@code internal.stat}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.loop;
