package org.verbena.api.internal.ladder;

import java.net.InetSocketAddress;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** The Flight Recorder's event of a ladder, from the call to its outcome. */
@Name("org.verbena.Ladder")
@Label("RDMA Ladder")
@Category({"Verbena"})
@Description("A client that connects by a ladder was given a rung, or none")
@StackTrace(false)
final class LadderFlight extends Event {
    @Label("Remote Address")
    @Nullable String remoteAddress;

    @Label("Rung")
    @Description("What carries the connection; empty if no rung connected")
    @Nullable String rung;

    @Label("Passed")
    @Description("Why each better rung does not")
    @Nullable String passed;

    /** Records the outcome. */
    void finish(InetSocketAddress address, String used, String reasons) {
        end();
        if (shouldCommit()) {
            remoteAddress = address.toString();
            rung = used;
            passed = reasons;
            commit();
        }
    }
}
