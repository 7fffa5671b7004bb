package org.verbena.transport.protocol;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Who may begin a transfer, in which order, and that what was charged is given back. */
class TransferBudgetTest {
    private static final int BYTES = 100_000;
    private static final long STALLED = TransferBudget.STALLED_NANOS;

    private final TransferBudget budget = new TransferBudget(4L * BYTES);
    private final Deque<User> toldUsers = new ArrayDeque<>();
    private final Deque<User> out = new ArrayDeque<>();
    private final List<Integer> grants = new ArrayList<>();

    /** A connection that wants to move so many transfers. */
    private final class User {
        final int number;
        final TransferBudget.Share share;
        int wanted;
        int waits;
        int told;

        User(int number, int wanted) {
            this.number = number;
            this.wanted = wanted;
            share = budget.new Share(this::told, () -> waits++);
        }

        private void told() {
            told++;
            toldUsers.add(this);
        }

        void pump() {
            share.beginAsking();
            while (wanted > 0 && share.tryBegin(BYTES)) {
                assertThat(share.begun(BYTES)).isEqualTo(BYTES);
                wanted--;
                grants.add(number);
                out.add(this);
            }
            share.endAsking();
        }
    }

    private List<User> users(int count, int wanted) {
        List<User> users = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            users.add(new User(i, wanted));
        }
        return users;
    }

    /** The oldest transfer completes, and those whose turn it is act. */
    private void completeOne() {
        User user = out.remove();
        user.share.ended(BYTES);
        user.pump();
        while (!toldUsers.isEmpty()) {
            toldUsers.remove().pump();
        }
    }

    @Test
    void oneAloneHasAllOfIt() {
        User alone = new User(0, 100);
        alone.pump();
        assertThat(out).hasSize(4);
        while (!out.isEmpty()) {
            assertThat(budget.outBytes()).isEqualTo((long) BYTES * Math.min(4, alone.wanted + out.size()));
            completeOne();
        }
        assertThat(alone.wanted).isZero();
        assertThat(alone.told)
                .as("asks at the end of its own batches, and needs no call")
                .isZero();
        assertThat(budget.isAwaited()).isFalse();
    }

    @Test
    void allTakeTurns() {
        List<User> users = users(5, 20);
        users.forEach(User::pump);
        assertThat(grants).containsExactly(0, 0, 0, 0);
        while (grants.size() < 84) {
            completeOne();
            assertThat(budget.outBytes()).isEqualTo(4L * BYTES);
        }
        for (int i = 4; i + 5 <= 84; i++) {
            assertThat(new HashSet<>(grants.subList(i, i + 5)))
                    .as("five grants from %d on", i)
                    .hasSize(5);
        }
    }

    @Test
    void aNewcomerWaitsForOneTransferOfEachOther() {
        List<User> users = users(4, 1000);
        users.forEach(User::pump);
        for (int i = 0; i < 50; i++) {
            completeOne();
        }
        User newcomer = new User(4, 1);
        newcomer.pump();
        assertThat(newcomer.waits).isEqualTo(1);
        int before = grants.size();
        while (newcomer.wanted > 0) {
            completeOne();
        }
        assertThat(grants.size() - before).isLessThanOrEqualTo(5);
    }

    @Test
    void whatIsLongerThanTheBudgetGoesAlone() {
        User user = new User(0, 1);
        user.pump();
        TransferBudget.Share large = budget.new Share(() -> {}, () -> {});
        assertThat(large.tryBegin(50L * BYTES)).isFalse();
        User other = new User(1, 1);
        other.pump();
        assertThat(other.wanted).as("it does not overtake").isEqualTo(1);
        completeOne();
        assertThat(large.tryBegin(50L * BYTES)).isTrue();
        assertThat(large.begun(50L * BYTES)).isEqualTo(50L * BYTES);
        assertThat(other.told).isZero();
        large.ended(50L * BYTES);
        assertThat(other.told).isEqualTo(1);
    }

    @Test
    void shortOnesNeitherWaitNorCount() {
        User user = new User(0, 100);
        user.pump();
        TransferBudget.Share other = budget.new Share(() -> {}, () -> {});
        assertThat(other.tryBegin(TransferBudget.SHORT_BYTES)).isTrue();
        assertThat(other.begun(TransferBudget.SHORT_BYTES)).isZero();
        assertThat(budget.outBytes()).isEqualTo(4L * BYTES);
        assertThat(other.tryBegin(TransferBudget.SHORT_BYTES + 1)).isFalse();
    }

    @Test
    void whoWantsNothingWhenItIsItsTurnLetsTheNextGo() {
        User first = new User(0, 4);
        User second = new User(1, 1);
        User third = new User(2, 1);
        first.pump();
        second.pump();
        third.pump();
        second.wanted = 0; // it cannot, for instance because its send queue is full
        completeOne();
        assertThat(third.wanted).isZero();
        assertThat(budget.isAwaited()).isFalse();
    }

    @Test
    void oneThatStallsIsNotChargedForLong() {
        User stalled = new User(0, 4);
        stalled.pump();
        User waiting = new User(1, 2);
        waiting.pump();
        waiting.share.check(5);
        waiting.share.check(4 + STALLED);
        assertThat(waiting.told).isZero();
        waiting.share.check(5 + STALLED);
        assertThat(waiting.told).isEqualTo(1);
        assertThat(budget.outBytes()).isZero();
        waiting.pump();
        assertThat(waiting.wanted).isZero();
        // What was written off is not given back as well.
        stalled.share.ended(BYTES);
        assertThat(budget.outBytes()).isEqualTo(2L * BYTES);
        waiting.share.ended(BYTES);
        waiting.share.ended(BYTES);
        assertThat(budget.outBytes()).isZero();
    }

    @Test
    void oneThatCompletesSomethingIsChargedForTheRest() {
        User slow = new User(0, 4);
        slow.pump();
        User waiting = new User(1, 2);
        waiting.pump();
        for (int i = 1; i <= 2; i++) {
            waiting.share.check(i * STALLED);
            slow.share.ended(BYTES);
            slow.share.begun(BYTES);
        }
        waiting.share.check(3 * STALLED);
        assertThat(budget.outBytes()).isEqualTo(4L * BYTES);
    }

    @Test
    void theBudgetIsKeptAndNothingLeaksWhateverTheOrder() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        List<User> users = users(12, 0);
        List<User> running = new ArrayList<>();
        for (int i = 0; i < 20_000; i++) {
            User user = users.get(random.nextInt(users.size()));
            switch (random.nextInt(4)) {
                case 0 -> {
                    user.wanted += random.nextInt(5);
                    user.pump();
                }
                case 1 -> user.share.leave();
                default -> {
                    if (!out.isEmpty()) {
                        completeOne();
                    }
                }
            }
            running.clear();
            running.addAll(out);
            assertThat(budget.outBytes())
                    .as("seed %d, step %d", seed, i)
                    .isEqualTo((long) running.size() * BYTES)
                    .isLessThanOrEqualTo(4L * BYTES);
        }
        for (User user : users) {
            user.wanted = 0;
            user.share.leave();
        }
        toldUsers.clear();
        while (!out.isEmpty()) {
            completeOne();
        }
        assertThat(budget.outBytes()).as("seed %d", seed).isZero();
        assertThat(budget.isAwaited()).as("seed %d", seed).isFalse();
    }

    @Test
    void refusesABudgetOfNothing() {
        assertThatThrownBy(() -> new TransferBudget(0)).isInstanceOf(IllegalArgumentException.class);
    }
}
