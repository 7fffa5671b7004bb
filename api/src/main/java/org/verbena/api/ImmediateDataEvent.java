package org.verbena.api;

/**
 * The peer wrote into this end's memory with immediate data or, with RAW framing, sent a message with immediate data,
 * which follows this event. Fired through the pipeline with {@code userEventTriggered}, in order with messages.
 *
 * @param immediateData the peer's 32 bits
 * @param lengthBytes how many bytes it wrote
 */
public record ImmediateDataEvent(int immediateData, int lengthBytes) {}
