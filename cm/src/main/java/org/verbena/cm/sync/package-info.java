/**
 * Calls that wait, for tools, tests and learning: {@link org.verbena.cm.sync.SynchronousId} waits for the event that
 * ends each step, and {@link org.verbena.cm.sync.CmEndpoint} for completions. Built on {@code org.verbena.cm}, which
 * does not use it and has the calls for programs with an event loop.
 */
@NullMarked
package org.verbena.cm.sync;

import org.jspecify.annotations.NullMarked;
