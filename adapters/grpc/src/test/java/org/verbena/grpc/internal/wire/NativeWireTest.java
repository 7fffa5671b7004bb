package org.verbena.grpc.internal.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The bytes of the native transport, and a decoder that is fed anything. */
class NativeWireTest {
    private static final int MAX_FIELDS_BYTES = 8192;
    private static final Settings SETTINGS = new Settings(1, 1, 1 << 20, 100);

    /** How many inputs the decoder gets; a soak sets more. */
    private static final int EXECUTIONS = Integer.getInteger("verbena.fuzz.executions", 200_000);

    /** Writes down what it gets. */
    private static final class Recorder implements FrameListener {
        private final List<String> frames = new ArrayList<>();
        private Fields last;

        @Override
        public void onSettings(Settings settings) {
            frames.add(settings.toString());
        }

        @Override
        public void onHeaders(int stream, boolean end, Fields fields) {
            frames.add("HEADERS " + stream + " " + end + " " + text(fields));
            last = fields;
        }

        @Override
        public void onData(int stream, boolean end, ByteBuf from, int lengthBytes) {
            assertThat(from.readableBytes()).isGreaterThanOrEqualTo(lengthBytes);
            frames.add("DATA " + stream + " " + end + " " + lengthBytes);
        }

        @Override
        public void onTrailers(int stream, Fields fields) {
            frames.add("TRAILERS " + stream + " " + text(fields));
            last = fields;
        }

        @Override
        public void onReset(int stream, boolean notProcessed, int status, String text) {
            frames.add("RESET " + stream + " " + notProcessed + " " + status + " " + text);
        }

        @Override
        public void onWindow(int stream, int bytes) {
            frames.add("WINDOW " + stream + " " + bytes);
        }

        @Override
        public void onGoAway(int lastStream, GoAwayReason reason, String text) {
            frames.add("GOAWAY " + lastStream + " " + reason + " " + text);
        }

        @Override
        public void onPing(boolean ack, long nonce) {
            frames.add("PING " + ack + " " + nonce);
        }

        private static String text(Fields fields) {
            StringBuilder text = new StringBuilder();
            text.append(fields.path()).append(' ').append(fields.authority());
            for (int i = 0; i < fields.count(); i++) {
                text.append(' ').append(new String(fields.namesAndValues()[2 * i], StandardCharsets.UTF_8));
                text.append('=').append(new String(fields.namesAndValues()[2 * i + 1], StandardCharsets.ISO_8859_1));
            }
            return text.toString();
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    private final Recorder recorder = new Recorder();
    private final FrameReader reader = new FrameReader(MAX_FIELDS_BYTES);
    private final FieldWriter writer = new FieldWriter();

    private void read(Consumer<ByteBuf> frames) throws ProtocolViolation {
        ByteBuf message = Unpooled.buffer();
        frames.accept(message);
        reader.read(message, recorder);
        assertThat(message.isReadable()).isFalse();
    }

    private void begin() throws ProtocolViolation {
        read(into -> Frames.settings(into, SETTINGS));
        recorder.frames.clear();
    }

    private int fields(ByteBuf into, int stream, String... namesAndValues) {
        int begin = Frames.beginFields(into, false, stream, false);
        for (int i = 0; i < namesAndValues.length; i += 2) {
            writer.write(into, bytes(namesAndValues[i]), bytes(namesAndValues[i + 1]));
        }
        Frames.endFields(into, begin);
        return into.writerIndex() - begin - Frames.HEADER_BYTES;
    }

    @Test
    void eachFrameArrivesAsItWasWritten() throws Exception {
        read(into -> {
            Frames.settings(into, SETTINGS);
            fields(into, 1, Fields.PATH, "/a/b", Fields.AUTHORITY, "host", "name", "value", "x-bin", "\0\u00ff");
            Frames.data(into, 1, false, 3);
            into.writeBytes(new byte[3]);
            Frames.data(into, 1, true, 0);
            Frames.reset(into, 1, true, 14, "why");
            Frames.window(into, 1, 17);
            Frames.goAway(into, 9, GoAwayReason.TOO_MANY_PINGS, "text");
            Frames.ping(into, true, -5);
            int begin = Frames.beginFields(into, true, 1, true);
            writer.write(into, bytes("grpc-status"), bytes("0"));
            Frames.endFields(into, begin);
        });
        assertThat(recorder.frames)
                .containsExactly(
                        SETTINGS.toString(),
                        "HEADERS 1 false /a/b host name=value x-bin=\0\u00ff",
                        "DATA 1 false 3",
                        "DATA 1 true 0",
                        "RESET 1 true 14 why",
                        "WINDOW 1 17",
                        "GOAWAY 9 TOO_MANY_PINGS text",
                        "PING true -5",
                        "TRAILERS 1 null null grpc-status=0");
    }

    @Test
    void fieldsThatRepeatTakeOneByteEach() throws Exception {
        begin();
        read(into -> fields(into, 1, Fields.PATH, "/a/b", "token", "secret", "deadline", "1"));
        int[] length = new int[1];
        read(into -> length[0] = fields(into, 2, Fields.PATH, "/a/b", "token", "secret", "deadline", "2"));
        assertThat(length[0]).isEqualTo(1 + 1 + 4);
        assertThat(recorder.frames.get(1)).isEqualTo("HEADERS 2 false /a/b null token=secret deadline=2");
        read(into -> fields(into, 3, "token", "other"));
        read(into -> fields(into, 4, "token", "other"));
        read(into -> length[0] = fields(into, 5, "token", "other"));
        assertThat(length[0]).as("a value that came twice running is stored").isEqualTo(1);
        assertThat(recorder.frames.get(4)).isEqualTo("HEADERS 5 false null null token=other");
    }

    @Test
    void aProgramThatChangesABinaryValueChangesNoLaterCall() throws Exception {
        begin();
        for (int call = 1; call <= 3; call++) {
            int stream = call;
            read(into -> fields(into, stream, "x-bin", "abc"));
            assertThat(recorder.last.namesAndValues()[1]).containsExactly('a', 'b', 'c');
            recorder.last.namesAndValues()[1][0] = 'z';
        }
    }

    @Test
    void aProgramThatChangesWhatItSentChangesNoLaterCall() throws Exception {
        begin();
        byte[] value = {'a', 'b', 'c'};
        for (int call = 1; call <= 2; call++) {
            read(into -> {
                int begin = Frames.beginFields(into, false, 1, false);
                writer.write(into, bytes("x-bin"), value);
                Frames.endFields(into, begin);
            });
            assertThat(recorder.last.namesAndValues()[1]).isEqualTo(value);
            value[0]++;
        }
    }

    @Test
    void tooMuchMetadataIsCountedAndTheTableGoesOn() throws Exception {
        begin();
        String[] many = new String[2 * 300];
        for (int i = 0; i < many.length; i += 2) {
            many[i] = "name" + i % 40;
            many[i + 1] = "value";
        }
        read(into -> fields(into, 1, many));
        assertThat(recorder.last.isTooLarge()).isTrue();
        assertThat(recorder.last.sizeBytes()).isGreaterThan(MAX_FIELDS_BYTES);
        read(into -> fields(into, 2, "name38", "value", "name1", "more"));
        assertThat(recorder.frames.get(1)).isEqualTo("HEADERS 2 false null null name38=value name1=more");
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4})
    void randomMetadataArrives(long seed) throws Exception {
        begin();
        Random random = new Random(seed);
        for (int frame = 1; frame < 500; frame++) {
            String[] fields = new String[2 * random.nextInt(12)];
            StringBuilder expected = new StringBuilder("HEADERS " + frame + " false null null");
            for (int i = 0; i < fields.length; i += 2) {
                fields[i] = "n" + random.nextInt(90);
                fields[i + 1] = "v".repeat(random.nextInt(20) == 0 ? 250 + random.nextInt(100) : random.nextInt(3));
                expected.append(' ').append(fields[i]).append('=').append(fields[i + 1]);
            }
            int stream = frame;
            read(into -> fields(into, stream, fields));
            assertThat(recorder.frames.get(frame - 1)).as("seed %d", seed).isEqualTo(expected.toString());
        }
    }

    private void violates(Consumer<ByteBuf> frames) {
        assertThatThrownBy(() -> read(frames)).isInstanceOf(ProtocolViolation.class);
    }

    @Test
    void theFirstFrameIsSettings() {
        violates(into -> Frames.ping(into, false, 1));
    }

    @Test
    void settingsComeOnce() throws Exception {
        begin();
        violates(into -> Frames.settings(into, SETTINGS));
    }

    @Test
    void anotherProtocolIsRefused() {
        violates(into -> into.writeBytes(bytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")));
        violates(into -> {
            Frames.settings(into, SETTINGS);
            into.setInt(Frames.HEADER_BYTES, 1234);
        });
    }

    @Test
    void anotherVersionIsRefused() {
        violates(into -> Frames.settings(into, new Settings(2, 3, 1 << 20, 1)));
        violates(into -> Frames.settings(into, new Settings(0, 0, 1 << 20, 1)));
    }

    @Test
    void aLaterVersionThatKnowsThisOneIsTaken() throws Exception {
        read(into -> Frames.settings(into, new Settings(1, 7, 1 << 20, 1)));
    }

    @Test
    void framesBeyondTheirBoundsAreRefused() throws Exception {
        begin();
        violates(into -> {});
        violates(into -> into.writeZero(Frames.HEADER_BYTES - 1));
        violates(into -> Frames.data(into, 1, false, 1)); // ends before its payload
        violates(into -> Frames.data(into, 1, false, 0));
        violates(into -> Frames.data(into, 0, true, 0));
        violates(into -> Frames.data(into, -1, true, 0));
        violates(into -> {
            Frames.data(into, 1, false, Frames.MAX_DATA_BYTES + 1);
            into.writeZero(Frames.MAX_DATA_BYTES + 1);
        });
        violates(into -> Frames.window(into, 1, 0));
        violates(into -> Frames.window(into, 1, -1));
        violates(into -> Frames.reset(into, 1, false, 0, ""));
        violates(into -> Frames.reset(into, 1, false, 17, ""));
        violates(into -> into.writeByte(99).writeByte(0).writeInt(1).writeInt(0));
    }

    private void violatesWith(int... payload) {
        violates(into -> {
            int begin = Frames.beginFields(into, false, 1, false);
            for (int b : payload) {
                into.writeByte(b);
            }
            Frames.endFields(into, begin);
        });
    }

    @Test
    void fieldsBeyondTheirBoundsAreRefused() throws Exception {
        begin();
        violatesWith(FieldTable.STORED); // of an empty slot
        violatesWith(FieldTable.VALUE, 3, 1, 'x');
        violatesWith(FieldTable.STORE);
        violatesWith(FieldTable.STORE, FieldTable.SLOTS, 1, 'a', 1, 'b');
        violatesWith(FieldTable.PLAIN, 5, 'a');
        violatesWith(FieldTable.PLAIN, 0, 0);
        violatesWith(FieldTable.PLAIN, 1, 'A', 0);
        violatesWith(FieldTable.PLAIN, 2, ':', 'x', 0);
        violatesWith(FieldTable.PLAIN, 0xff, 0xff, 0xff, 0xff);
        violatesWith(9);
        violates(into -> {
            int begin = Frames.beginFields(into, false, 1, false);
            into.writeByte(FieldTable.STORE).writeByte(0).writeByte(1).writeByte('a');
            into.writeByte(0x80).writeByte(2).writeZero(256);
            Frames.endFields(into, begin);
        });
    }

    /** Whatever comes, it is a frame or a violation, and what is kept is bounded by what came and by the table. */
    @Test
    void anyInputIsAFrameOrAViolation() {
        long seed = new Random().nextLong();
        System.out.println("seed " + seed);
        Random random = new Random(seed);
        byte[] valid = valid();
        long violations = 0;
        for (int i = 0; i < EXECUTIONS; i++) {
            FrameReader fuzzed = new FrameReader(MAX_FIELDS_BYTES);
            byte[] input = valid.clone();
            int changes = 1 + random.nextInt(6);
            int from = random.nextInt(4) == 0 ? 0 : Frames.HEADER_BYTES + Frames.SETTINGS_BYTES;
            for (int c = 0; c < changes; c++) {
                input[from + random.nextInt(input.length - from)] =
                        (byte) (random.nextBoolean() ? random.nextInt() : 1 << random.nextInt(8));
            }
            int length = random.nextInt(8) == 0 ? random.nextInt(input.length + 1) : input.length;
            try {
                fuzzed.read(Unpooled.wrappedBuffer(input, 0, length), new Recorder());
            } catch (ProtocolViolation expected) {
                violations++;
            }
        }
        assertThat(violations).isBetween(EXECUTIONS / 20L, (long) EXECUTIONS);
    }

    private static byte[] valid() {
        ByteBuf into = Unpooled.buffer();
        NativeWireTest from = new NativeWireTest();
        Frames.settings(into, SETTINGS);
        from.fields(into, 1, Fields.PATH, "/a/b", Fields.AUTHORITY, "host", "name", "value", "x-bin", "abc");
        from.fields(into, 2, Fields.PATH, "/a/b", "name", "other", "more", "v".repeat(140));
        from.fields(into, 3, "name", "other", "x-bin", "abc");
        Frames.data(into, 1, false, 30);
        into.writeZero(30);
        Frames.window(into, 1, 77);
        Frames.reset(into, 2, false, 1, "text");
        Frames.ping(into, false, 5);
        Frames.goAway(into, 3, GoAwayReason.GRACEFUL, "text");
        byte[] bytes = new byte[into.readableBytes()];
        into.readBytes(bytes);
        return bytes;
    }
}
