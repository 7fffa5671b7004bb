package org.verbena.transport.verbs.epoll;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.verbena.transport.system.SelectorDescriptor;

@EnabledOnOs(OS.LINUX)
@Timeout(240)
class SelectorDescriptorTest {
    private static final int BUSY_SELECTORS = 4;

    @Test
    void isThatOfTheSelectorAmongOthersThatAreBusy() throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        List<Thread> busy = new ArrayList<>();
        for (int i = 0; i < BUSY_SELECTORS; i++) {
            busy.add(Thread.ofPlatform().start(() -> keepBusy(over)));
        }
        try {
            for (int i = 0; i < 20; i++) {
                findsAndWatches();
            }
        } finally {
            over.set(true);
            for (Thread thread : busy) {
                thread.join();
            }
        }
    }

    /** Opens descriptors, has them come and go, and closes them. */
    private static void keepBusy(AtomicBoolean over) {
        try {
            while (!over.get()) {
                try (Selector selector = Selector.open();
                        Epoll epoll = new Epoll(1);
                        EventDescriptor event = new EventDescriptor()) {
                    epoll.add(event.fd(), Epoll.READABLE, 1);
                    for (int i = 0; i < 1000; i++) {
                        selector.wakeup();
                        event.signal();
                        selector.selectNow();
                        event.drain();
                    }
                }
            }
        } catch (java.io.IOException failure) {
            throw new AssertionError(failure);
        }
    }

    private static void findsAndWatches() throws Exception {
        Pipe pipe = Pipe.open();
        try (Selector selector = Selector.open();
                Epoll epoll = new Epoll(1)) {
            epoll.add(SelectorDescriptor.of(selector), Epoll.READABLE, 7);
            pipe.source().configureBlocking(false);
            pipe.source().register(selector, SelectionKey.OP_READ);
            assertThat(selector.selectNow()).isZero();
            assertThat(epoll.await(0)).isZero();
            pipe.sink().write(ByteBuffer.allocate(1));
            assertThat(epoll.await(-1)).isEqualTo(1);
            assertThat(epoll.data(0)).isEqualTo(7);
            assertThat(selector.selectNow()).isEqualTo(1);
        } finally {
            pipe.sink().close();
            pipe.source().close();
        }
    }
}
