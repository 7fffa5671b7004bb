/**
 * Where a client's servers are, and what state its connections are in. These are values; {@code RdmaClient} in
 * {@code org.verbena.api} uses them.
 *
 * <p>Begin with {@link org.verbena.api.client.Target}. May use {@code api.service}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.client;
