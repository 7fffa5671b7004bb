package org.verbena.transport.verbs;

import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.cm.CmId;
import org.verbena.verbs.Context;
import org.verbena.verbs.NativeRdmaException;

/**
 * The connection loop that sets something up and takes it down: the common one until its device is known, then the
 * device's. Steps run one at a time and in the order in which they were asked for, across that change.
 *
 * <pre>
 *   COMMON --moveTo(device)--&gt; of the device
 * </pre>
 *
 * <p>Each step brings a turn to the loop, and a turn takes all steps that there are, so that a turn which a loop
 * refused leaves none behind. A turn that comes to a loop that was left meanwhile goes after the others.
 */
final class SetupLoop implements Executor {
    private static final Logger LOG = LoggerFactory.getLogger(SetupLoop.class);

    private final VerbsProvider provider;
    private final ConcurrentLinkedDeque<Runnable> steps = new ConcurrentLinkedDeque<>();

    /** Null for the common one. Written by the loop that it is. */
    private volatile @Nullable ConnectionLoop ofDevice;

    SetupLoop(VerbsProvider provider) {
        this.provider = provider;
    }

    /**
     * The loop that it is now.
     *
     * @throws NativeRdmaException there is none, for there is no device
     */
    ConnectionLoop loop() {
        ConnectionLoop known = ofDevice;
        return known == null ? provider.connectionLoop() : known;
    }

    /**
     * Does a step behind those that were asked for before. Any thread.
     *
     * @throws NativeRdmaException there is no connection loop, for there is no device
     * @throws java.util.concurrent.RejectedExecutionException the loop has ended; the step will not be done
     */
    @Override
    public void execute(Runnable step) {
        ConnectionLoop to = loop(); // before the step is queued, since it may throw
        steps.add(step);
        try {
            to.loop().execute(this::turn);
        } catch (Throwable refused) {
            if (steps.removeLastOccurrence(step)) {
                throw refused;
            }
            // A turn of another step did it.
        }
    }

    private void turn() {
        while (!steps.isEmpty()) {
            ConnectionLoop now = loop();
            if (!now.loop().inEventLoop()) {
                now.loop().execute(this::turn);
                return;
            }
            steps.remove().run();
        }
    }

    /**
     * Whether what was seen on this thread may be handled at once: this is the loop, and nothing was asked for before.
     */
    boolean isHere() {
        return loop().loop().inEventLoop() && steps.isEmpty();
    }

    /**
     * The device is known: moves there, as the last thing that a step does to what is set up. The next step, before
     * those that were asked for, takes the id along, since its events come to the loop of its channel. That is done by
     * the device's loop: it takes the lock of the device's channel, which is held while the device does not answer.
     * Where the kernel refuses to move the id everything stays here: then it works, and waits if another device does
     * not answer.
     *
     * @param device whose loop to go to
     * @param id moved along; null if there is none
     */
    void moveTo(Context device, @Nullable CmId id) {
        try {
            ConnectionLoop its = provider.connectionLoopOf(device);
            if (id != null) {
                steps.addFirst(() -> take(its, id, device));
            }
            ofDevice = its;
            if (id != null) {
                its.loop().execute(this::turn);
            }
        } catch (RuntimeException refused) {
            stay(device, refused);
        }
    }

    private void take(ConnectionLoop its, CmId id, Context device) {
        if (id.isClosed()) {
            return;
        }
        try {
            its.adopt(id);
        } catch (RuntimeException refused) {
            ofDevice = null;
            stay(device, refused);
        }
    }

    private static void stay(Context device, RuntimeException refused) {
        LOG.warn(
                "What is set up over {} stays on the common connection loop",
                device.device().name(),
                refused);
    }
}
