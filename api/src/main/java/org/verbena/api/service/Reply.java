package org.verbena.api.service;

/**
 * A reply with what the server has sent beside its message.
 *
 * @param <T> the type of the message
 * @param message what the handler has replied
 * @param metadata what the handler has added; empty if there is nothing
 */
public record Reply<T>(T message, Metadata metadata) {}
