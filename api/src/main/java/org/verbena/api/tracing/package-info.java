/**
 * Traces of requests for OpenTelemetry. Needs {@code io.opentelemetry:opentelemetry-api}, which Verbena does not bring
 * along.
 *
 * <p>Begin with {@link org.verbena.api.tracing.RequestTracing}. May use {@code org.verbena.api}, {@code api.client} and
 * {@code api.service}. Nothing in this module names it.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.tracing;
