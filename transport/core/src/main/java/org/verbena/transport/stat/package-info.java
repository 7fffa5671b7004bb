/**
 * What {@code verbena stat} shows of a process: a file of counters, which a thread of the process writes, and its
 * reader.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.stat;
