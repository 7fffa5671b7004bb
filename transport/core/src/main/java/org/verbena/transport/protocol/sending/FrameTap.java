package org.verbena.transport.protocol.sending;

import io.netty.buffer.ByteBuf;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.verbena.transport.protocol.Frame;

/** Reports each frame to a listener, for debugging. */
public final class FrameTap {
    private final boolean raw;
    private final Consumer<Throwable> onThrown;
    private Frame.@Nullable Listener listener;

    public FrameTap(boolean raw, Consumer<Throwable> onThrown) {
        this.raw = raw;
        this.onThrown = onThrown;
    }

    public void setListener(Frame.@Nullable Listener value) {
        listener = value;
    }

    /** Whether frames are to be described. */
    public boolean isOn() {
        return listener != null;
    }

    /** Describes the frame that is about to be posted; null if nobody listens. */
    @Nullable Frame staged(SendLedger ledger) {
        return listener == null
                ? null
                : staged(ledger, (int) ledger.request().buffers().totalBytes());
    }

    /** Describes a frame whose header is in the next work request's slot. */
    Frame staged(SendLedger ledger, int frameBytes) {
        return raw ? Frame.raw(frameBytes) : Frame.read(ledger.slots(), ledger.slotOffset(), frameBytes);
    }

    /**
     * The frame was posted. An exception of the listener ends the connection, but the device has the frame, so its
     * sender continues normally.
     */
    void sent(@Nullable Frame frame) {
        Frame.Listener current = listener;
        if (current != null && frame != null) {
            try {
                current.onFrameSent(frame);
            } catch (Throwable e) {
                onThrown.accept(e);
            }
        }
    }

    /** A frame arrived; returns false if the listener threw, which ends the connection. */
    public boolean received(ByteBuf buffer, int lengthBytes) {
        Frame.Listener current = listener;
        if (current == null) {
            return true;
        }
        try {
            current.onFrameReceived(
                    raw ? Frame.raw(lengthBytes) : Frame.read(buffer, 0, Math.min(lengthBytes, buffer.capacity())));
            return true;
        } catch (Throwable e) {
            onThrown.accept(e);
            return false;
        }
    }
}
