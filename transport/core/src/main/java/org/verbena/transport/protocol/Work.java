package org.verbena.transport.protocol;

/** The purpose of a work request; control frames have none. */
sealed interface Work permits Operation, Inbound {}
