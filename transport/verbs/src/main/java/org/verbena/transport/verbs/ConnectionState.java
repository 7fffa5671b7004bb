package org.verbena.transport.verbs;

import org.jspecify.annotations.Nullable;

/**
 * What a {@link ConnectionSetup} has come to, with its letter in the table:
 *
 * <pre>
 *   N  NEW             nothing was asked for
 *   A  ADDRESS         the address is being resolved
 *   R  ROUTE           the route is being resolved, or the call for that waits for its turn
 *   C  ROUTE_CALL      that call runs, and uses the id: so there is no queue pair yet
 *   P  PREPARING       the endpoint makes its queue pair; a request that is accepted begins here
 *   W  CONNECTING      the peer's answer is to come, or the connect call waits for its turn
 *   K  CONNECT_CALL    the connect call runs, and uses the id
 *   V  CALLED          it has returned, and the kernel holds the queue pair until the peer has answered
 *   U  UP              connected
 *   L  LEAVING         the peer's answer to the disconnect request is to come
 *   D  DOWN            there is no peer, or no more
 *   O  ROUTE_ORPHAN    the endpoint is gone, and the id waits for its call to return
 *   Y  CONNECT_ORPHAN  the same, with a queue pair
 *   X  ORPHAN          the endpoint is gone, and the queue pair waits for the peer's answer
 *   Q  PARTING         the queue pair is being destroyed, and the peer's answer is to come
 *   E  ENDING          the queue pair is being destroyed
 *   I  LINGERING       the id waits for the peer's answer
 *   G  GONE            the id is not needed any more
 *
 *                    N A R C P W K V U L D O Y X Q E I G
 *   BEGIN            A ! ! ! ! ! ! ! ! ! ! ! ! ! ! ! ! !
 *   ADDR_RESOLVED    ! R ! ! ! ! ! ! ! ! . ! ! ! ! . ! .
 *   ROUTE_RESOLVED   ! ! P ! ! ! ! ! ! ! . ! ! ! ! . ! .
 *   CALL             ! ! C ! ! K ! ! ! ! ! ! ! ! ! ! ! !
 *   RETURNED         ! ! ! R ! ! V ! ! ! ! E X ! ! ! ! !
 *   CONNECT          ! ! ! ! W ! ! ! ! ! ! ! ! ! ! ! ! !
 *   ESTABLISHED      ! ! ! ! ! U ! U . . . ! ! E . . . .
 *   OVER             D D D ! D D ! D D D D ! ! E E . G .
 *   TIMEWAIT_EXIT    ! ! ! ! ! ! ! ! ! D . ! ! E E . G .
 *   NOTIFY           D D D . D D . . L ! . ! ! ! ! . ! .
 *   DESTROY          E E E O E E Y X E Q E ! ! ! ! ! ! !
 *   DESTROYED        ! ! ! ! ! ! ! ! ! ! ! ! ! ! I G ! !
 *   LINGERED         ! ! ! ! ! ! ! ! ! ! ! ! ! ! ! ! G .
 * </pre>
 *
 * <p>An event, in its row, leads to the state of that letter; {@code .} is the same state, and {@code !} is refused.
 * What rdma_cm reports while a call runs waits until it has returned.
 */
enum ConnectionState {
    NEW('N'),
    ADDRESS('A'),
    ROUTE('R'),
    ROUTE_CALL('C'),
    PREPARING('P'),
    CONNECTING('W'),
    CONNECT_CALL('K'),
    CALLED('V'),
    UP('U'),
    LEAVING('L'),
    DOWN('D'),
    ROUTE_ORPHAN('O'),
    CONNECT_ORPHAN('Y'),
    ORPHAN('X'),
    PARTING('Q'),
    ENDING('E'),
    LINGERING('I'),
    GONE('G');

    /** What happens. */
    enum Event {
        /** The endpoint begins to connect. */
        BEGIN("A!!!!!!!!!!!!!!!!!"),
        ADDR_RESOLVED("!R!!!!!!!!.!!!!.!."),
        ROUTE_RESOLVED("!!P!!!!!!!.!!!!.!."),
        /** A call that may block is made. */
        CALL("!!C!!K!!!!!!!!!!!!"),
        /** The call has returned. */
        RETURNED("!!!R!!V!!!!EX!!!!!"),
        /** There is a queue pair: connects, or accepts. */
        CONNECT("!!!!W!!!!!!!!!!!!!"),
        ESTABLISHED("!!!!!U!U...!!E...."),
        /** Nothing more comes of the connection, as rdma_cm reports, or since a call was refused. */
        OVER("DDD!DD!DDDD!!EE.G."),
        TIMEWAIT_EXIT("!!!!!!!!!D.!!EE.G."),
        /** The endpoint ends, and notifies the peer. */
        NOTIFY("DDD.DD..L!.!!!!.!."),
        /** The endpoint's work is back. */
        DESTROY("EEEOEEYXEQE!!!!!!!"),
        /** The queue pair is destroyed, or cannot be. */
        DESTROYED("!!!!!!!!!!!!!!IG!!"),
        /** The peer had its time to answer. */
        LINGERED("!!!!!!!!!!!!!!!!G.");

        /** The row of the table: to which state the event leads from each one. */
        private final String row;

        Event(String row) {
            this.row = row;
        }
    }

    private static final String LETTERS = "NARCPWKVULDOYXQEIG";

    private final char letter;

    ConnectionState(char letter) {
        this.letter = letter;
    }

    /** The state to which an event leads from this one; null if it is refused. */
    @Nullable ConnectionState after(Event event) {
        char to = event.row.charAt(LETTERS.indexOf(letter));
        if (to == '.') {
            return this;
        }
        for (ConnectionState state : values()) {
            if (state.letter == to) {
                return state;
            }
        }
        return null;
    }

    /** Whether a call that may block uses the id. */
    boolean isInCall() {
        return this == ROUTE_CALL || this == CONNECT_CALL || this == ROUTE_ORPHAN || this == CONNECT_ORPHAN;
    }
}
