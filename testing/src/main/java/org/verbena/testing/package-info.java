/**
 * A test kit for programs that use Verbena. {@link org.verbena.testing.InProcessProvider} connects the two ends within
 * one process, and {@link org.verbena.testing.Faults} breaks what it has connected.
 */
package org.verbena.testing;
