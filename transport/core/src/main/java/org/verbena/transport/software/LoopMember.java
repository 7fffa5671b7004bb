package org.verbena.transport.software;

import io.netty.channel.IoEventLoop;
import io.netty.channel.nio.NioIoHandle;
import org.slf4j.LoggerFactory;

/** A member of a loop, which ends with it. All methods are called on the loop's thread. */
public interface LoopMember extends NioIoHandle {
    @Override
    void close();

    /** The loop that it belongs to. */
    IoEventLoop loop();

    /** Where it stands among the members. */
    int place();

    /** It moves to another place. */
    void setPlace(int place);

    /** It is being registered with this handler. */
    void bind(SoftwareIoHandler handler);

    /** Time has passed: see {@link SoftwareIoHandler#tick()}. */
    default void onTick() {}

    /** Called when a member has thrown in one of these calls; those of the other members follow. */
    default void onFailure(Throwable cause) {
        LoggerFactory.getLogger(LoopMember.class).error("an error in {}", this, cause);
    }

    /** The loop ends: finish now. */
    void onLoopEnding();

    /** Closes the channel at once, and leaves. */
    void closeNow();
}
