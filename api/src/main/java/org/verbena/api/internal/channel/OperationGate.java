package org.verbena.api.internal.channel;

import io.netty.channel.EventLoop;
import java.nio.channels.ClosedChannelException;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.MemoryDomain;
import org.verbena.transport.protocol.connection.MessageConnection;

/** The channel, as far as one-sided operations need it. */
public interface OperationGate {

    /** The channel's loop, or null while it is registered with none. Any thread. */
    @Nullable EventLoop loop();

    /**
     * The connection, for an operation that is posted after everything flushed so far. Event loop only.
     *
     * @throws java.nio.channels.NotYetConnectedException it is not established yet
     * @throws ClosedChannelException it is closing or closed
     */
    MessageConnection enter0() throws ClosedChannelException;

    /** The memory domain of the connection's device; once {@link #enter0()} has succeeded. */
    MemoryDomain domain0();

    /** Whether memory that is read into needs the right REMOTE_WRITE; once {@link #enter0()} has succeeded. */
    boolean readSinkNeedsRemoteWrite0();

    /** Translates a cause into the channel's exception. Event loop only. */
    Throwable translate0(Throwable cause);
}
