package org.verbena.api;

/**
 * The peer wrote into our memory with immediate data, or sent a message with it (RAW framing; the message follows). Fired through the pipeline
 * with {@code userEventTriggered}, in order with messages.
 *
 * @param immediateData the peer's 32 bits
 * @param lengthBytes how much it wrote
 */
public record ImmediateDataEvent(int immediateData, int lengthBytes) {}
