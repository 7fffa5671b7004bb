/**
 * Verbena's figures for Micrometer. Needs {@code io.micrometer:micrometer-core}, which Verbena does not bring along.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.metrics;
