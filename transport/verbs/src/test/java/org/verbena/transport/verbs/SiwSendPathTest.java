package org.verbena.transport.verbs;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.WorkRequest;

/** What siw completes in any order is reported in the order posted. */
@Tag("no-stub")
class SiwSendPathTest {
    private final List<String> told = new ArrayList<>();
    private final SendPath.Events events = new SendPath.Events() {
        @Override
        public void onSendCompleted(long workId, WorkStatus status, int lengthBytes) {
            told.add(workId + " " + status);
        }

        @Override
        public void onSendsRefused(int errno, int taken, int out) {
            told.add("refused");
        }
    };
    private final SiwSendPath path = new SiwSendPath(3, events);
    private long nextId;

    private void post(int count) {
        WorkRequest work = new WorkRequest(1);
        for (int i = 0; i < count; i++) {
            path.ring.slot(path.ring.next()).set(work.asSend(nextId++, 0));
            path.ring.take();
        }
    }

    @Test
    void anOutcomeWaitsForThoseBeforeIt() {
        post(3);
        path.onDone(2);
        path.onDone(1);
        assertThat(told).isEmpty();
        assertThat(path.isCompletionDue()).isTrue();
        path.onDone(0);
        assertThat(told).containsExactly("0 SUCCESS", "1 SUCCESS", "2 SUCCESS");
        assertThat(path.isCompletionDue()).isFalse();
    }

    @Test
    void anOutcomeIsThatOfOneWorkRequest() {
        post(3);
        path.onDone(1);
        path.onDone(0);
        post(2); // in the slots of these
        path.onFailed(2, WorkStatus.REMOTE_ACCESS_ERROR);
        assertThat(told).containsExactly("0 SUCCESS", "1 SUCCESS", "2 REMOTE_ACCESS_ERROR");
        path.completeRest(true);
        assertThat(told).endsWith("3 FLUSHED", "4 FLUSHED");
    }

    @Test
    void aFailureBeforeTheWorkThatItFollowsIsKept() {
        post(3);
        path.onFailed(2, WorkStatus.REMOTE_ACCESS_ERROR);
        path.completeRest(true);
        assertThat(told).containsExactly("0 FLUSHED", "1 FLUSHED", "2 REMOTE_ACCESS_ERROR");
    }

    @Test
    void theFirstPartSaysWhy() {
        post(2);
        path.onDone(0);
        path.onFirstPartFailed(1, WorkStatus.REMOTE_ACCESS_ERROR);
        path.onFailed(1, WorkStatus.FLUSHED);
        assertThat(told).containsExactly("0 SUCCESS", "1 REMOTE_ACCESS_ERROR");
    }
}
