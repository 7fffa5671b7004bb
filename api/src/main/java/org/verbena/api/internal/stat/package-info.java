/**
 * What {@code verbena stat} and {@code ProviderStatistics} show: accounts of providers, rows of connections,
 * counters of rungs. May use {@code internal.memory}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.stat;
