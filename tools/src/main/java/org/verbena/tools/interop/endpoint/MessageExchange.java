package org.verbena.tools.interop.endpoint;

import java.lang.foreign.Arena;
import org.jspecify.annotations.Nullable;
import org.verbena.cm.CmId;
import org.verbena.cm.sync.CmEndpoint;
import org.verbena.samples.command.CommandFailure;
import org.verbena.verbs.MemoryRegion;
import org.verbena.verbs.WorkCompletions;
import org.verbena.verbs.work.SendFlags;

/** The exchange of {@code rdma_client} and {@code rdma_server} once they have an id: a message of 16 bytes each way. */
final class MessageExchange implements AutoCloseable {
    private static final int MESSAGE_BYTES = 16;
    private static final long RECEIVE_ID = 1;
    private static final long SEND_ID = 2;
    private static final int WAIT_MILLIS = 30_000;

    private final CmEndpoint endpoint;
    private final Arena arena = Arena.ofShared();
    private final MemoryRegion region;

    /** Makes the queue pair and posts the receive, before connecting or accepting. */
    MessageExchange(CmId id) {
        endpoint = CmEndpoint.create(id, 1, 1);
        try {
            region = endpoint.registerMessages(arena.allocate(2 * MESSAGE_BYTES));
            endpoint.postReceive(RECEIVE_ID, region, 0, MESSAGE_BYTES);
        } catch (RuntimeException refused) {
            endpoint.close();
            arena.close();
            throw refused;
        }
    }

    void send() {
        endpoint.postSend(SEND_ID, region, MESSAGE_BYTES, MESSAGE_BYTES, SendFlags.SIGNALED);
        requireSuccess("the message was not sent", endpoint.awaitSend(WAIT_MILLIS));
    }

    void awaitMessage() {
        requireSuccess("no message came", endpoint.awaitReceive(WAIT_MILLIS));
    }

    private static void requireSuccess(String failed, @Nullable WorkCompletions completion) {
        if (completion == null) {
            throw new CommandFailure(failed + " within " + WAIT_MILLIS / 1000 + " s");
        }
        if (!completion.isSuccess(0)) {
            throw new CommandFailure(failed + ": " + completion.describe(0));
        }
    }

    @Override
    public void close() {
        region.close();
        endpoint.close();
        arena.close();
    }
}
