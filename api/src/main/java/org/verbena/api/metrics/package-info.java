/**
 * Verbena's figures for Micrometer. Needs {@code io.micrometer:micrometer-core}, which Verbena does not bring
 * along.
 *
 * <p>Begin with {@link org.verbena.api.metrics.RdmaMetrics}, {@link org.verbena.api.metrics.ClientMetrics}
 * and {@link org.verbena.api.metrics.RequestMetrics}. May use {@code org.verbena.api}, {@code api.client}, whose
 * requests it times, and {@code api.ladder}, whose statistics it reads. Nothing in this module names it.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.metrics;
