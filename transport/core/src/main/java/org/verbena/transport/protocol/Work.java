package org.verbena.transport.protocol;

/** What a work request is posted for; control frames have none. */
sealed interface Work permits Operation, Inbound {}
