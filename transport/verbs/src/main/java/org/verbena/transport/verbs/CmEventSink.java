package org.verbena.transport.verbs;

import org.verbena.cm.CmEvent;

/** Receives the events of the {@link org.verbena.cm.CmId} that it is attached to. */
interface CmEventSink {

    /**
     * Something happened to the id.
     *
     * @param event what; on the connection loop's thread
     */
    void onCmEvent(CmEvent event);
}
