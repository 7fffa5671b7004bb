package org.verbena.transport.verbs;

import org.verbena.cm.CmEvent;

/** Hears the events of a {@link org.verbena.cm.CmId}, to which it is attached. */
interface CmEventSink {

    /**
     * Something happened to the id.
     *
     * @param event what; on the connection loop's thread
     */
    void onCmEvent(CmEvent event);
}
