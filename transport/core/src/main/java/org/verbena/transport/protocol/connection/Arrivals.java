package org.verbena.transport.protocol.connection;

import io.netty.buffer.ByteBuf;
import java.lang.foreign.MemorySegment;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.protocol.state.Lifecycle.Phase;
import org.verbena.transport.spi.Endpoint;

/** What comes from the peer: in receives, or as messages that lie in memory of the endpoint. */
final class Arrivals {
    private final Parts parts;
    private final MessageConnection connection;

    /** Something came in this batch. */
    private boolean received;

    Arrivals(Parts parts, MessageConnection connection) {
        this.parts = parts;
        this.connection = connection;
    }

    /** A receive was consumed or flushed. */
    void completed(Endpoint endpoint, long workId, WorkStatus status, int lengthBytes, int flags, int immediateData) {
        parts.settling.beginBatch();
        ByteBuf buffer = parts.window.take(workId);
        if (buffer == null) {
            connection.abort(
                    new IllegalStateException("the provider completed receive " + workId + ", which is not posted"));
            return;
        }
        if (status != WorkStatus.SUCCESS) {
            connection.workFailed("receive of up to " + buffer.capacity() + " bytes", status);
            buffer.release();
            return;
        }
        frameCame();
        if (parts.life.is(Phase.ABORTED)) {
            buffer.release();
            return;
        }
        try {
            parts.frameReceiver.received(buffer, lengthBytes, flags, immediateData);
            connection.agree(endpoint);
        } catch (Throwable e) {
            connection.threw(e);
        }
    }

    /** A message lies in memory of the endpoint; returns whether it was taken from there. */
    boolean lies(MemorySegment memory, long offset, int lengthBytes) {
        parts.settling.beginBatch();
        try {
            if (!parts.frameReceiver.tryTake(memory, offset, lengthBytes)) {
                return false;
            }
            frameCame(); // before a callback may ask
            parts.frameReceiver.deliverTaken(lengthBytes);
        } catch (Throwable e) {
            parts.frameReceiver.dropTaken();
            connection.threw(e);
        }
        return true;
    }

    private void frameCame() {
        parts.counters.frameReceived();
        received = true;
    }

    /** Whether something came since the last call. */
    boolean takeReceived() {
        boolean taken = received;
        received = false;
        return taken;
    }
}
