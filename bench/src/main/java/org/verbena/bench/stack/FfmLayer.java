package org.verbena.bench.stack;

import org.verbena.verbs.QueuePair;
import org.verbena.verbs.ReceiveQueue;
import org.verbena.verbs.SendQueue;
import org.verbena.verbs.WorkCompletions;

/** The loop of {@code linked_echo} in Java: posts and polls through nothing but the bindings. */
final class FfmLayer extends NativeQueues {
    private static final int TURNS_BETWEEN_CLOCKS = 1024;
    private static final long OTHER = 1L << 32;
    private static final long SEND = 1L << 33;

    /** One end: the slots that its sends use, in order. */
    private static final class End {
        final long firstOffset;
        final long ids;
        final SendQueue sends;
        final ReceiveQueue receives;
        final int[] used = new int[SLOTS];
        int head;
        int tail;

        End(QueuePair pair, int number) {
            firstOffset = (long) number * SLOTS * MESSAGE_BYTES;
            ids = number * OTHER;
            sends = pair.sendQueue();
            receives = pair.receiveQueue();
        }
    }

    private void receive(End end, int slot) {
        end.receives.receive(end.ids | slot).sge(region, end.firstOffset + (long) slot * MESSAGE_BYTES, MESSAGE_BYTES);
    }

    private void send(End end, int slot) {
        end.used[end.tail++ % SLOTS] = slot;
        end.sends
                .send(SEND | end.ids | end.tail, 0)
                .sge(region, end.firstOffset + (long) slot * MESSAGE_BYTES, MESSAGE_BYTES);
    }

    /** Posts the receives first. Only the last send of a list asks for a completion. */
    private static void flush(End end) {
        end.receives.flush();
        end.sends.signalLast();
        end.sends.flush();
    }

    @Override
    long echo(QueuePair one, QueuePair other, Series series) throws Throwable {
        pair(one, other);
        End[] ends = {new End(one, 0), new End(other, 1)};
        for (int slot = 0; slot < 2 * series.window; slot++) {
            if (slot >= series.window) {
                receive(ends[0], slot);
            }
            receive(ends[1], slot);
            flush(ends[0]);
            flush(ends[1]);
        }
        for (int slot = 0; slot < series.window; slot++) {
            send(ends[0], slot);
        }
        try (WorkCompletions batch = new WorkCompletions(64)) {
            return echo(ends, batch, series);
        }
    }

    private long echo(End[] ends, WorkCompletions batch, Series series) {
        int out = series.window;
        int sendsOut = series.window;
        boolean isOver = false;
        long arrived = 0;
        long turns = 0;
        while (out > 0 || sendsOut > 0) {
            flush(ends[0]);
            flush(ends[1]);
            int count = completions.poll(batch);
            for (int i = 0; i < count; i++) {
                if (!batch.isSuccess(i)) {
                    throw new IllegalStateException(batch.describe(i));
                }
                long id = batch.workRequestId(i);
                End end = ends[(id & OTHER) == 0 ? 0 : 1];
                if ((id & SEND) != 0) {
                    while (end.head != (int) id) {
                        receive(end, end.used[end.head++ % SLOTS]);
                        sendsOut--;
                    }
                    continue;
                }
                arrived++;
                if (end == ends[0] && isOver) {
                    out--;
                } else {
                    send(end, (int) id);
                    sendsOut++;
                }
            }
            if (++turns % TURNS_BETWEEN_CLOCKS == 0) {
                isOver = series.isTimeUp();
            }
        }
        return arrived;
    }
}
