/** What {@code verbena stat} shows of a process: a file of counters in memory that the process maps, and its reader. */
@org.jspecify.annotations.NullMarked
package org.verbena.transport.stat;
