package org.verbena.api.internal.client;

import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.verbena.api.internal.stat.RungCounters;
import org.verbena.api.ladder.LadderOptions;
import org.verbena.api.ladder.LadderResult;
import org.verbena.transport.ConnectionException;

/**
 * A connection of a client to an address, which is made again when it is lost. Control thread only.
 *
 * <pre>{@code
 *     +----------- time ------------+
 *     v                             |
 *  DIALING --has failed--> BACKING OFF
 *     |                             ^
 *     +--is up--> UP --is lost, or the server has it leave--+      any --the address is gone, or close--> over
 * }</pre>
 *
 * <p>On a ladder that {@linkplain LadderOptions#withMoveUp moves up}, a link below the best rung dials with the better
 * ones from time to time. When one is up, it takes all further operations. The connection before it stays as it is for
 * a probation: if the better one is lost by then, or does not answer, the link goes back to it. Else it ends when its
 * last request has completed.
 */
final class Link {
    private static final Logger LOG = LoggerFactory.getLogger(Link.class);

    // How long a connection by a better rung has to last: as long as the time between attempts, within these bounds.
    private static final long LEAST_PROBATION_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long MOST_PROBATION_NANOS = TimeUnit.SECONDS.toNanos(3);

    /** How long to wait before the next attempt to replace an old connection, which still works. */
    private static final long RETRY_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final Links links;
    private final SocketAddress address;
    private @Nullable Dial dial;
    private @Nullable Future<?> timer;

    /** Of the timer. */
    private long dueNanos;

    /** Before then the server does not want this client back. */
    private long notBeforeNanos;

    /** Whether it dials, or is about to since its server has asked it to leave. */
    private boolean tries;

    /** Whether its address is gone. */
    private boolean gone;

    private @Nullable Connected current;
    private long upNanos;
    private int failures;
    private @Nullable Throwable failure;
    private boolean over;

    /** Whether its requests had no replies, so that others are preferred to it. */
    private boolean ejected;

    private Ejections ejections = new Ejections();
    private @Nullable Future<?> readmission;

    /** Replaces the connection when it is old. */
    private @Nullable Future<?> aging;

    // Of the way up a ladder.
    private @Nullable Dial climb;
    private @Nullable Future<?> climbTimer;
    /** The connection before the present one, while that one is on probation. */
    private @Nullable Connected former;

    private LadderMoveFlight flight = new LadderMoveFlight();

    Link(Links links, SocketAddress address) {
        this.links = links;
        this.address = address;
    }

    SocketAddress address() {
        return address;
    }

    /** The connection that takes operations; null if there is none. */
    @Nullable Connected current0() {
        return current;
    }

    /** Whether it has a connection that answers. */
    boolean isGood0() {
        return current != null && !ejected;
    }

    boolean isDialing0() {
        return dial != null;
    }

    boolean isGone0() {
        return gone;
    }

    void setGone0(boolean isGone) {
        gone = isGone;
    }

    private void setTries0(boolean now) {
        if (tries != now) {
            tries = now;
            links.trying0(now ? 1 : -1);
        }
    }

    /** Why it had no connection the last time; null if it has never been without one. */
    @Nullable Throwable failure0() {
        return failure;
    }

    /**
     * Connects.
     *
     * @param beganNanos when the connect timeout began
     */
    void dial0(long beganNanos) {
        timer = null;
        Dial attempt = newDial(null, beganNanos, done -> dialed0(done));
        dial = attempt;
        attempt.start();
        setTries0(true);
    }

    private Dial newDial(@Nullable List<String> rungs, long beganNanos, Consumer<Dial> end) {
        return new Dial(links.control(), links.dials(), links.dialer(), address, rungs, beganNanos, end);
    }

    private void dialed0(Dial done) {
        Connected up = done.connected();
        if (dial != done) {
            if (up != null) {
                up.transport().close();
            }
            return;
        }
        dial = null;
        setTries0(false);
        if (up == null) {
            retry0(done.failure(), 0, false, false);
            return;
        }
        take0(up);
        if (leavesAtOnce0(up)) {
            return;
        }
        climbLater0();
        links.changed0();
        links.won0(address);
    }

    private void take0(Connected up) {
        current = up;
        upNanos = links.control().nanoTime();
        ejected = false;
        ejections = new Ejections();
        stop(readmission);
        age0(up);
        links.opened0(up);
        up.transport().whenClosed(() -> links.control().run(() -> lost0(up)));
    }

    /** A connection becomes old from now on. */
    private void age0(Connected up) {
        stop(aging);
        long age = links.maxAgeNanos();
        if (age > 0) {
            long shorterNanos = links.control().clock().random().nextLong(age / 10 + 1);
            aging = links.control().schedule(() -> replace0(up), age - shorterNanos);
        }
    }

    /** The server may have asked to leave before the connection took operations. */
    private boolean leavesAtOnce0(Connected now) {
        long hintNanos = now.transport().leavingNanos();
        if (hintNanos < 0) {
            return false;
        }
        links.log().info(links + ": " + now.transport() + " has asked its clients to leave");
        leave0(hintNanos);
        return true;
    }

    private void lost0(Connected lost) {
        links.closed0(lost);
        if (lost.equals(former)) {
            former = null;
        }
        if (!lost.equals(current)) {
            return;
        }
        Connected before = former;
        if (before != null) {
            goBack0(before, lost, "is lost");
            return;
        }
        current = null;
        forgetFailures0();
        retry0(links.causeOf(lost), 0, false, true);
    }

    /** Its connection has ended: those before it do not count if it was a good one. */
    private void forgetFailures0() {
        if (links.control().nanoTime() - upNanos >= Links.STEADY_NANOS) {
            failures = 0;
        }
    }

    private void retry0(@Nullable Throwable cause, long leastNanos, boolean isInvited, boolean wasUp) {
        boolean isFirst = failure == null;
        failure = cause;
        failures++;
        stopClimbing0();
        stop(readmission);
        stop(aging);
        if (links.redials(this)) {
            notBeforeNanos = links.control().nanoTime() + leastNanos;
            dialIn0(leastNanos + links.waitNanos0(failures));
            setTries0(isInvited);
        }
        links.failed0(this, isFirst, wasUp);
    }

    private void dialIn0(long delayNanos) {
        dueNanos = links.control().nanoTime() + delayNanos;
        timer = links.control().schedule(() -> dial0(links.control().nanoTime()), delayNanos);
        LOG.debug("{}: tries {} again in {} ms", links, address, TimeUnit.NANOSECONDS.toMillis(delayNanos), failure);
    }

    /**
     * If it waits, it waits no longer than this from now on, or from when its server wants it back.
     *
     * @param mostNanos 0 to try at once, whatever the server wants
     * @param forgets whether the next wait is as after the first failure
     */
    void hurry0(long mostNanos, boolean forgets) {
        if (timer == null) {
            return;
        }
        failures = forgets ? Math.min(failures, 1) : failures;
        long now = links.control().nanoTime();
        long leastNanos = mostNanos == 0 ? 0 : Math.max(0, notBeforeNanos - now);
        if (dueNanos - now - leastNanos > mostNanos) {
            stop(timer);
            dialIn0(leastNanos + links.control().clock().random().nextLong(mostNanos + 1));
        }
    }

    /** The server asks to leave: further requests go elsewhere, or wait until it can be connected to again. */
    void leave0(long retryNanos) {
        Connected now = current;
        if (now == null) {
            return;
        }
        Connected before = former;
        former = null;
        current = null;
        forgetFailures0();
        retry0(
                new ConnectionException("the server at " + address + " asked its clients to leave"),
                links.backoff().heedNanos(retryNanos),
                retryNanos == 0,
                true);
        // Retire them last: an operation that they refuse then finds other connections.
        now.transport().leave();
        if (before != null) { // of the same server
            before.transport().leave();
        }
    }

    /** Several requests in a row had no reply. */
    void unanswered0() {
        Connected now = current;
        Connected before = former;
        if (now == null) {
            return;
        }
        if (before != null) {
            goBack0(before, now, "does not answer");
            now.transport().leave();
        } else {
            eject0();
        }
    }

    /** Requests had no replies: others are preferred for a while, longer each time. */
    private void eject0() {
        if (ejected || !links.hasOtherThan0(this)) {
            return;
        }
        ejected = true;
        long nanos = ejections.next(links.control().nanoTime(), links.backoff().mostNanos());
        links.log()
                .warn(links + ": " + address + " does not answer its requests, and gets none for "
                        + TimeUnit.NANOSECONDS.toMillis(nanos) + " ms");
        readmission = links.control().schedule(this::readmit0, nanos);
        links.changed0();
    }

    private void readmit0() {
        ejected = false;
        links.changed0();
    }

    /** Its connection is old: makes another, and leaves the old one when that is up. */
    private void replace0(Connected old) {
        if (!old.equals(current)) {
            return;
        }
        if (climb != null || former != null) { // it may be replaced without this
            aging = links.control().schedule(() -> replace0(old), RETRY_NANOS);
            return;
        }
        Dial attempt = newDial(null, links.control().nanoTime(), done -> replaced0(done, old));
        climb = attempt;
        attempt.start();
    }

    private void replaced0(Dial done, Connected old) {
        Connected up = done.connected();
        if (climb != done || !old.equals(current)) {
            if (up != null) {
                up.transport().close();
            }
            return;
        }
        climb = null;
        if (up == null || up.transport().leavingNanos() >= 0) {
            LOG.debug("{}: stays, since there is no other connection", old.transport(), done.failure());
            if (up != null) {
                up.transport().close();
            }
            aging = links.control().schedule(() -> replace0(old), RETRY_NANOS);
            return;
        }
        take0(up);
        stop(climbTimer);
        climbLater0();
        links.changed0();
        old.transport().leave();
    }

    /** Ends it: its connections end with their last requests. */
    void retire0() {
        Connected last = current;
        Connected before = former;
        end0();
        if (last != null) {
            last.transport().leave();
        }
        if (before != null) {
            before.transport().leave();
        }
    }

    /** Makes no more connections. */
    void end0() {
        over = true;
        current = null;
        former = null;
        stop(timer);
        timer = null;
        setTries0(false);
        stop(readmission);
        stop(aging);
        Dial dialing = dial;
        if (dialing != null) {
            dial = null;
            dialing.cancel();
        }
        stopClimbing0();
    }

    private static void stop(@Nullable Future<?> scheduled) {
        if (scheduled != null) {
            scheduled.cancel(false);
        }
    }

    // ---- up a ladder

    private void stopClimbing0() {
        stop(climbTimer);
        climbTimer = null;
        Dial climbing = climb;
        if (climbing != null) {
            climb = null;
            climbing.cancel();
        }
    }

    private static String rung(Connected connected) {
        LadderResult ladder = connected.ladder();
        return ladder == null ? "" : ladder.rung();
    }

    private static List<String> better(LadderOptions ladder, Connected than) {
        List<String> rungs = ladder.rungs();
        return rungs.subList(0, Math.max(0, rungs.indexOf(rung(than))));
    }

    private void climbLater0() {
        LadderOptions ladder = links.dialer().ladder();
        Connected now = current;
        if (ladder == null || now == null || over) {
            return;
        }
        Duration every = ladder.moveUp();
        List<String> better = better(ladder, now);
        if (every != null && !better.isEmpty()) {
            long everyNanos = TimeUnit.NANOSECONDS.convert(every);
            // Up to a quarter later: clients of one server that began together need not try together.
            long delayNanos = everyNanos + links.control().clock().random().nextLong(everyNanos / 4 + 1);
            climbTimer = links.control()
                    .schedule(
                            () -> climb0(better, Math.clamp(everyNanos, LEAST_PROBATION_NANOS, MOST_PROBATION_NANOS)),
                            delayNanos);
        }
    }

    private void climb0(List<String> better, long probationNanos) {
        climbTimer = null;
        if (climb != null) { // the connection is being replaced
            climbLater0();
            return;
        }
        Dial attempt = newDial(better, links.control().nanoTime(), done -> climbed0(done, probationNanos));
        climb = attempt;
        attempt.start();
    }

    private void climbed0(Dial done, long probationNanos) {
        Connected up = done.connected();
        Connected before = current;
        if (climb != done || before == null) {
            if (up != null) {
                up.transport().close();
            }
            return;
        }
        climb = null;
        if (up == null) {
            LOG.debug("{} stays on its rung", before.transport(), done.failure());
            climbLater0();
            return;
        }
        former = before;
        flight = new LadderMoveFlight();
        flight.begin();
        take0(up);
        if (leavesAtOnce0(up)) {
            return;
        }
        links.log().info(up.transport() + " has moved up from " + rung(before) + " to " + rung(up));
        climbTimer = links.control().schedule(() -> passed0(up, probationNanos), probationNanos);
        links.changed0();
    }

    /** The probation is over, unless all requests still wait for their replies. */
    private void passed0(Connected up, long probationNanos) {
        climbTimer = null;
        if (!up.equals(current)) {
            return;
        }
        if (former != null && up.transport().isUnproven()) {
            climbTimer = links.control().schedule(() -> passed0(up, probationNanos), probationNanos);
            return;
        }
        Connected before = former;
        former = null;
        if (before != null) {
            before.transport().leave();
            finishFlight(before, up, true);
        }
        RungCounters.countMovedUp(rung(up));
        climbLater0();
    }

    /** Returns to the connection before, since the better one is of no use. */
    private void goBack0(Connected before, Connected better, String why) {
        links.log()
                .info(before.transport() + ": continues with " + rung(before) + ", since the better connection " + why);
        former = null;
        current = before;
        finishFlight(before, better, false);
        if (leavesAtOnce0(before)) {
            return;
        }
        stop(climbTimer);
        climbLater0();
        age0(before);
        links.changed0();
    }

    private void finishFlight(Connected before, Connected offered, boolean moved) {
        InetSocketAddress remote = address instanceof InetSocketAddress internet ? internet : null;
        flight.finish(remote, rung(before), rung(offered), moved);
    }
}
