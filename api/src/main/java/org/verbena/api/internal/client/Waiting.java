package org.verbena.api.internal.client;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import org.verbena.api.internal.request.Messenger;

/**
 * The calls of a client that have found no connection. They begin in the order in which they came, and before all calls
 * of their thread that find the next connection.
 */
final class Waiting {
    /** Those that the control thread has not seen yet. Guarded by itself, as is what {@link #publish0} publishes. */
    private final Queue<Call<?>> coming = new ArrayDeque<>();

    // Confined to the control thread.
    /** Those that wait for a connection, the oldest first. */
    private final Set<Call<?>> waiting = new LinkedHashSet<>();

    /** Those that wait until they may be sent again. */
    private final Set<Call<?>> resting = new HashSet<>();

    /** Adds one that has found no connection, unless there is one by now, which begins it. Any thread. */
    void enter(Call<?> call) {
        Messenger found;
        synchronized (coming) {
            found = call.findNow();
            if (found == null) {
                coming.add(call);
            }
        }
        if (found == null) {
            Control.run(this::takeIn0);
        } else {
            call.attempt(found);
        }
    }

    private void takeIn0() {
        synchronized (coming) {
            drain0();
        }
    }

    private void drain0() {
        for (Call<?> call = coming.poll(); call != null; call = coming.poll()) {
            call.next0();
        }
    }

    /** Begins those that wait, with the connections that there are now. */
    void goOn0() {
        for (Call<?> call : List.copyOf(waiting)) {
            Messenger messenger = call.pick0();
            if (messenger != null && waiting.remove(call)) {
                call.go0(messenger);
            }
        }
    }

    /** Lets all threads see the connections that there are now, behind the calls that are on their way here. */
    void publish0(Runnable publication) {
        synchronized (coming) {
            drain0();
            publication.run();
        }
    }

    void wait0(Call<?> call) {
        waiting.add(call);
    }

    void rest0(Call<?> call) {
        resting.add(call);
    }

    void leave0(Call<?> call) {
        waiting.remove(call);
        resting.remove(call);
    }

    /** There will be no connection any more. */
    void giveUp0() {
        takeIn0();
        List<Call<?>> all = new ArrayList<>(waiting);
        all.addAll(resting);
        waiting.clear();
        resting.clear();
        all.forEach(Call::giveUp0);
    }
}
