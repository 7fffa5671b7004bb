package org.verbena.api.internal.request;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class OpenRequestsTest {
    private final OpenRequests open = new OpenRequests(new OpenRequests.Bounds(3, 100));

    private static Incoming request(long correlation) {
        return Incoming.ofTimedRequest(null, correlation, 0, Long.MAX_VALUE);
    }

    @Test
    void holdsSoManyAndNoMore() {
        assertThat(open.isEmpty()).isTrue();
        assertThat(open.hasRoom0(1000)).as("one longer than all may be").isTrue();
        for (int i = 1; i <= 3; i++) {
            assertThat(open.hasRoom0(20)).isTrue();
            assertThat(open.add0(request(i), 20)).isTrue();
        }
        assertThat(open.has0(3)).isTrue();
        assertThat(open.hasRoom0(0)).as("a fourth").isFalse();
        open.remove(open.find(3));
        assertThat(open.has0(3)).isFalse();
        assertThat(open.hasRoom0(60)).isTrue();
        assertThat(open.hasRoom0(61)).as("of more bytes").isFalse();
        open.all().forEach(open::remove);
        assertThat(open.isEmpty()).isTrue();
        assertThat(open.hasRoom0(1000)).isTrue();
    }

    @Test
    void aRequestIsRemovedOnce() {
        Incoming first = request(7);
        assertThat(open.add0(first, 90)).isTrue();
        open.remove(first);
        assertThat(open.add0(request(7), 90)).isTrue();
        open.remove(first);
        assertThat(open.has0(7)).isTrue();
        assertThat(open.hasRoom0(11)).as("the later one counts").isFalse();
    }

    @Test
    void takesNoneAfterItsEnd() {
        Incoming before = request(1);
        assertThat(open.add0(before, 1)).isTrue();
        assertThat(open.end()).containsExactly(before);
        assertThat(open.add0(request(2), 1)).isFalse();
        assertThat(open.find(2)).isNull();
    }
}
