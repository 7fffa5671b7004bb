package org.verbena.api.internal.request;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class OpenRequestsTest {
    private final OpenRequests open = new OpenRequests();

    private static Incoming request(long correlation) {
        return Incoming.ofTimedRequest(null, correlation, 0, Long.MAX_VALUE);
    }

    @Test
    void holdsSoManyAndNoMore() {
        assertThat(open.isEmpty()).isTrue();
        for (int i = 1; i <= OpenRequests.MOST; i++) {
            assertThat(open.add(request(i))).isTrue();
        }
        assertThat(open.find(OpenRequests.MOST)).isNotNull();
        Incoming further = request(OpenRequests.MOST + 1);
        assertThat(open.add(further)).isTrue();
        assertThat(open.find(OpenRequests.MOST + 1)).isNull();
        assertThat(open.all()).hasSize(OpenRequests.MOST);
        open.remove(further);
        open.all().forEach(open::remove);
        assertThat(open.isEmpty()).isTrue();
    }

    @Test
    void aRequestRemovesNoOtherWithItsNumber() {
        Incoming first = request(7);
        Incoming second = request(7);
        open.add(first);
        open.add(second);
        open.remove(first);
        assertThat(open.find(7)).isSameAs(second);
        assertThat(open.all()).containsExactly(second);
    }

    @Test
    void takesNoneAfterItsEnd() {
        Incoming before = request(1);
        open.add(before);
        assertThat(open.end()).containsExactly(before);
        assertThat(open.add(request(2))).isFalse();
        assertThat(open.find(2)).isNull();
    }
}
