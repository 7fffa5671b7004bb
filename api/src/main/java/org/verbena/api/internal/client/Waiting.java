package org.verbena.api.internal.client;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Queue;
import java.util.SequencedSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.verbena.api.internal.request.ClientTransport;

/**
 * The calls of a client that have found no connection, or no room on it. They begin in the order in which they came,
 * and before all calls of their thread that find the next connection; a request that was on its way to a connection
 * that ended may begin after these.
 */
final class Waiting {
    /** How often one of those that have found no room tries again, whatever the others do. */
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    /** Those that the control thread has not seen yet. Guarded by itself, as is what {@link #publish0} publishes. */
    private final Queue<Call<?>> coming = new ArrayDeque<>();

    private final Control control;

    // Confined to the control thread.
    /** Those that wait for a connection, the oldest first. */
    private final Set<Call<?>> waiting = new LinkedHashSet<>();

    /** Those that wait until they may be sent again. */
    private final Set<Call<?>> resting = new HashSet<>();

    /** Those that have found no room on their connection, in the order in which they go on. */
    private final SequencedSet<Call<?>> crowd = new LinkedHashSet<>();

    private boolean looking;

    /** Whether there is a crowd. Written by the control thread, read by any. */
    private volatile boolean crowded;

    Waiting(Control control) {
        this.control = control;
    }

    /**
     * Adds one that has found no connection, unless it may not wait, or there is one by now, which begins it. Any
     * thread.
     */
    void enter(Call<?> call) {
        ClientTransport found = call.findNow();
        if (found == null && !call.mayEnter()) {
            return;
        }
        boolean isFirst = false;
        if (found == null) {
            synchronized (coming) {
                found = call.findNow();
                if (found == null) {
                    isFirst = coming.isEmpty();
                    coming.add(call);
                }
            }
        }
        if (found != null) {
            call.enterNot(found);
        } else if (isFirst) { // for all that come until it runs
            try {
                control.run(this::takeIn0);
            } catch (Error refused) { // none may wait for a step that does not come
                refuseAll(refused);
            }
        }
    }

    private void refuseAll(Error cause) {
        List<Call<?>> all;
        synchronized (coming) {
            all = List.copyOf(coming);
            coming.clear();
        }
        all.forEach(call -> call.refuse(cause));
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

    /** Whether no call waits, for whatever reason. */
    boolean isEmpty0() {
        return waiting.isEmpty() && resting.isEmpty() && crowd.isEmpty();
    }

    /** Begins those that wait, with the connections that there are now. */
    void goOn0() {
        for (Call<?> call : List.copyOf(waiting)) {
            ClientTransport transport = call.pick0();
            if (transport != null && waiting.remove(call)) {
                call.go0(transport);
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

    /** Returns whether no other call waited for a connection before. */
    boolean wait0(Call<?> call) {
        boolean isFirst = waiting.isEmpty();
        waiting.add(call);
        return isFirst;
    }

    /** There is no connection now: those that wait for one fail. */
    void failWaiting0() {
        List<Call<?>> all = List.copyOf(waiting);
        waiting.clear();
        all.forEach(Call::giveUp0);
    }

    void rest0(Call<?> call) {
        resting.add(call);
    }

    /**
     * Waits until its connection has room: each call that is over makes room for the next, and one tries from time to
     * time, since what makes room may be none of these calls.
     *
     * @param again whether it goes before those that have not tried yet
     */
    void waitForRoom0(Call<?> call, boolean again) {
        if (again) {
            crowd.addFirst(call);
        } else {
            crowd.addLast(call);
        }
        crowded = true;
        if (!looking) {
            lookLater0();
        }
    }

    private void lookLater0() {
        control.schedule(this::look0, LOOK_NANOS);
        looking = true; // last: it may be refused
    }

    private void look0() {
        looking = false;
        if (!crowd.isEmpty()) {
            lookLater0();
            goOnInCrowd0();
        }
    }

    /** A call is over. Any thread. */
    void makeRoom() {
        if (crowded) {
            control.submit(this::goOnInCrowd0);
        }
    }

    private void goOnInCrowd0() {
        if (!crowd.isEmpty()) {
            crowd.getFirst().again0();
        }
    }

    void leave0(Call<?> call) {
        waiting.remove(call);
        resting.remove(call);
        crowd.remove(call);
        crowded = !crowd.isEmpty();
    }

    /** There will be no connection any more. */
    void giveUp0() {
        takeIn0();
        List<Call<?>> all = new ArrayList<>(waiting);
        all.addAll(resting);
        all.addAll(crowd);
        waiting.clear();
        resting.clear();
        crowd.clear();
        crowded = false;
        all.forEach(Call::giveUp0);
    }
}
