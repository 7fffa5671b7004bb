/**
 * What requests and replies carry beside their messages, or instead of one: values and streams.
 * {@code RdmaClient} and {@code RdmaServer} in {@code org.verbena.api} use them.
 *
 * <p>Begin with {@link org.verbena.api.service.Metadata}. Uses nothing else of this module.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.service;
