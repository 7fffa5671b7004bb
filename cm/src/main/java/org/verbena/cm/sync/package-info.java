/**
 * Calls that wait, for tools, tests and learning: {@link org.verbena.cm.sync.SynchronousId} waits for the event that
 * ends each step, and {@link org.verbena.cm.sync.CmEndpoint} for completions. It stands on {@code org.verbena.cm},
 * which knows nothing of it; what programs with an event loop use is there.
 */
@NullMarked
package org.verbena.cm.sync;

import org.jspecify.annotations.NullMarked;
