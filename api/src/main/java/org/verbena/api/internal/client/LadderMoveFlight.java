package org.verbena.api.internal.client;

import java.net.InetSocketAddress;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** The Flight Recorder's event of a client's move to a better rung: the time of its probation. */
@Name("org.verbena.LadderMove")
@Label("RDMA Ladder Move")
@Category({"Verbena"})
@Description("A client moved to a connection of a better rung, or went back to the one before, which it had kept")
@StackTrace(false)
final class LadderMoveFlight extends Event {
    @Label("Remote Address")
    @Nullable String remoteAddress;

    @Label("From")
    @Description("The rung that it had")
    @Nullable String from;

    @Label("To")
    @Description("The rung that connected")
    @Nullable String to;

    @Label("Moved")
    @Description("Whether it kept that one")
    boolean moved;

    /** Records the outcome. */
    void finish(@Nullable InetSocketAddress address, String had, String offered, boolean taken) {
        end();
        if (shouldCommit()) {
            remoteAddress = String.valueOf(address);
            from = had;
            to = offered;
            moved = taken;
            commit();
        }
    }
}
