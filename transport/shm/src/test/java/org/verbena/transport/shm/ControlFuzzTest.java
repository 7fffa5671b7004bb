package org.verbena.transport.shm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.verbena.transport.WorkStatus;
import org.verbena.transport.spi.FuzzLoop;

/**
 * What is said on the socket, cut anywhere, and changed here and there. What is not changed must be understood word by
 * word; what is must end in one error at the most; and the outcome must not depend on the cuts.
 *
 * <p>{@code -Dverbena.fuzz.controlExecutions=100000000} for long runs; seeds are as in {@link RingFuzzTest}.
 */
class ControlFuzzTest {
    private static final int MOST_WORDS = 12;

    private final FuzzLoop loop = new FuzzLoop("the control socket", "controlExecutions", 100_000);
    private SplittableRandom random = new SplittableRandom(0);
    private final ByteBuffer said = ByteBuffer.allocate(MOST_WORDS * 32);
    private long understood;
    private long broken;

    @Test
    @Timeout(value = 12, unit = TimeUnit.HOURS)
    void survivesChangedWords() {
        loop.run(this::execute, () -> understood + " understood, " + broken + " broken");
        long executions = loop.executions();
        if (executions >= 10_000) {
            assertThat(understood).as("understood").isGreaterThan(executions / 5);
            assertThat(broken).as("broken").isGreaterThan(executions / 20);
        }
    }

    private void execute(long seed) {
        random = new SplittableRandom(seed);
        StringBuilder meant = new StringBuilder();
        said.clear();
        int words = random.nextInt(MOST_WORDS);
        Control.Events end = Control.Events.WOKEN;
        for (int i = 0; i < words && end == Control.Events.WOKEN; i++) {
            end = say(meant);
        }
        said.flip();
        boolean changed = random.nextBoolean() && change();
        byte[] bytes = new byte[said.remaining()];
        said.get(bytes);
        Ear whole = new Ear();
        whole.hear(bytes, false);
        Ear inPieces = new Ear();
        inPieces.hear(bytes, true);
        if (!whole.toString().equals(inPieces.toString())) {
            throw new AssertionError("it depends on the pieces:\n" + whole + "\n" + inPieces);
        }
        if (!changed && !whole.toString().equals(meant.toString() + end)) {
            throw new AssertionError("meant:\n" + meant + end + "\nunderstood:\n" + whole);
        }
        if (whole.isBroken) {
            broken++;
        } else {
            understood++;
        }
    }

    private Control.Events say(StringBuilder meant) {
        int number = random.nextInt();
        switch (random.nextInt(12)) {
            case 0 -> {
                said.put(Control.disconnect());
                return Control.Events.DISCONNECTED;
            }
            case 1 -> {
                WorkStatus status = WorkStatus.values()[random.nextInt(WorkStatus.values().length)];
                said.put(Control.terminate(status, number));
                meant.append("request ").append(number).append('\n');
                return Control.Events.TERMINATED;
            }
            case 2, 3, 4, 5 -> {
                int descriptor = random.nextInt();
                long length = random.nextLong();
                boolean isWritable = random.nextBoolean();
                said.put(Control.file(number, descriptor, length, isWritable));
                Ear.add(meant, number, descriptor, length, isWritable);
            }
            case 6, 7 -> {
                said.put(Control.freed(number));
                Ear.remove(meant, number);
            }
            case 8 -> {
                long inode = random.nextLong();
                int slot = random.nextInt();
                said.put(Control.doorbell(number, inode, slot));
                Ear.ringAt(meant, number, inode, slot);
            }
            default -> said.put((byte) 1);
        }
        return Control.Events.WOKEN;
    }

    private boolean change() {
        if (said.limit() == 0) {
            return false;
        }
        int changes = 1 + random.nextInt(3);
        for (int i = 0; i < changes; i++) {
            int at = random.nextInt(said.limit());
            switch (random.nextInt(4)) {
                case 0 -> said.put(at, (byte) random.nextInt());
                case 1 -> said.put(at, (byte) random.nextInt(8));
                case 2 -> said.limit(at + 1);
                default -> said.put(at, said.array(), at / 2, Math.min(8, said.limit() - at));
            }
        }
        return true;
    }

    /** The hearing side. */
    private final class Ear implements Control.Files, Control.Bells {
        private final StringBuilder understood = new StringBuilder();
        private final Control control = new Control(this, this);
        boolean isBroken;

        void hear(byte[] bytes, boolean inPieces) {
            int at = 0;
            Control.Events events = Control.Events.WOKEN;
            try {
                while (at < bytes.length && events == Control.Events.WOKEN) {
                    int count = inPieces ? 1 + random.nextInt(bytes.length - at) : bytes.length;
                    events = control.parse(ByteBuffer.wrap(bytes, at, count));
                    at += count;
                }
            } catch (RingException e) {
                isBroken = true;
                understood.append("broken");
                return;
            }
            if (events == Control.Events.TERMINATED) {
                assertThat(control.terminateStatus()).isNotNull();
                understood.append("request ").append(control.terminateRequest()).append('\n');
            }
            understood.append(events);
        }

        static void add(StringBuilder to, int number, int descriptor, long lengthBytes, boolean isWritable) {
            to.append("file ").append(number).append(' ').append(descriptor).append(' ');
            to.append(lengthBytes).append(' ').append(isWritable).append('\n');
        }

        static void remove(StringBuilder to, int number) {
            to.append("freed ").append(number).append('\n');
        }

        static void ringAt(StringBuilder to, int descriptor, long inode, int slot) {
            to.append("doorbell ").append(descriptor).append(' ').append(inode).append(' ');
            to.append(slot).append('\n');
        }

        @Override
        public void ringAt(int descriptor, long inode, int slot) {
            ringAt(understood, descriptor, inode, slot);
        }

        @Override
        public void add(int number, int descriptor, long lengthBytes, boolean isWritable) {
            add(understood, number, descriptor, lengthBytes, isWritable);
        }

        @Override
        public void remove(int number) {
            remove(understood, number);
        }

        @Override
        public String toString() {
            return understood.toString();
        }
    }
}
