/**
 * The short form: messages with a header on one channel ({@link org.verbena.api.internal.request.Messenger}), requests
 * and their replies, handlers and limits. May use {@code internal.channel}, {@code internal.loop}, {@code
 * internal.stat} and the values of {@code api.service}.
 */
@org.jspecify.annotations.NullMarked
package org.verbena.api.internal.request;
