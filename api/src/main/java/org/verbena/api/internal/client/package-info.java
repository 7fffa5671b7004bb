/**
 * A client's connections: {@link org.verbena.api.internal.client.Links} makes them, makes them again when they are
 * lost, and gives each operation one, or has it wait for one. May use {@code internal.request}, {@code internal.loop},
 * {@code internal.stat} and the values of {@code api.client}, {@code api.service} and {@code api.ladder}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.client;
