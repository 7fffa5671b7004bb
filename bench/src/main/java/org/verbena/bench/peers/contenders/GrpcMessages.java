package org.verbena.bench.peers.contenders;

import io.grpc.Drainable;
import io.grpc.KnownLength;
import io.grpc.MethodDescriptor;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;

/** Plain bytes as gRPC's messages, cheaper than protobuf. */
final class GrpcMessages {
    private GrpcMessages() {}

    /** A payload with a sequence number in its first 8 bytes, copied only into gRPC's own buffer. */
    record Numbered(long sequence, byte[] payload) {}

    /** For those who only send them. */
    static final class OfNumbered implements MethodDescriptor.Marshaller<Numbered> {
        @Override
        public InputStream stream(Numbered message) {
            byte[] head = ByteBuffer.allocate(8).putLong(message.sequence()).array();
            return new Sent(head, message.payload());
        }

        @Override
        public Numbered parse(InputStream stream) {
            throw new UnsupportedOperationException("only sent");
        }
    }

    /** Bytes as they are. */
    static final class OfBytes implements MethodDescriptor.Marshaller<byte[]> {
        @Override
        public InputStream stream(byte[] value) {
            return new Sent(new byte[0], value);
        }

        @Override
        public byte[] parse(InputStream stream) {
            try {
                byte[] value = new byte[stream.available()];
                if (stream.readNBytes(value, 0, value.length) != value.length) {
                    throw new IOException("message cut short");
                }
                return value;
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    /** The payload with its first bytes replaced by the head; gRPC drains it straight into its buffer. */
    private static final class Sent extends InputStream implements KnownLength, Drainable {
        private final byte[] head;
        private final byte[] payload;
        private int position;

        Sent(byte[] head, byte[] payload) {
            this.head = head;
            this.payload = payload;
        }

        @Override
        public int available() {
            return payload.length - position;
        }

        @Override
        public int read() {
            if (position == payload.length) {
                return -1;
            }
            byte next = position < head.length ? head[position] : payload[position];
            position++;
            return next & 0xff;
        }

        @Override
        public int read(byte[] into, int index, int length) {
            if (length == 0) {
                return 0;
            }
            if (position == payload.length) {
                return -1;
            }
            boolean inHead = position < head.length;
            int taken = Math.min(length, (inHead ? head.length : payload.length) - position);
            System.arraycopy(inHead ? head : payload, position, into, index, taken);
            position += taken;
            return taken;
        }

        @Override
        public int drainTo(OutputStream target) throws IOException {
            target.write(head);
            target.write(payload, head.length, payload.length - head.length);
            position = payload.length;
            return payload.length;
        }
    }
}
