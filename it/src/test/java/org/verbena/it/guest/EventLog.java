package org.verbena.it.guest;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The file through which the guest tells the host what happens: records, each after its length. It grows while the host
 * reads it, and may end within a record if the guest died.
 */
final class EventLog {
    private EventLog() {}

    /** Writes events; from any thread, interrupted ones included, at whose write a channel would close. */
    static final class Writer implements AutoCloseable {
        private final FileOutputStream file;

        Writer(Path path) throws IOException {
            this.file = new FileOutputStream(path.toFile(), true);
        }

        synchronized void write(LabEvent event) throws IOException {
            ByteArrayOutputStream record = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(record);
            out.writeInt(0);
            event.writeTo(out);
            byte[] bytes = record.toByteArray();
            ByteBuffer.wrap(bytes).putInt(0, bytes.length - Integer.BYTES);
            file.write(bytes);
        }

        @Override
        public synchronized void close() throws IOException {
            file.close();
        }
    }

    /** Reads what has been written since the last time. */
    static final class Reader {
        private final Path path;
        private long position;

        Reader(Path path) {
            this.path = path;
        }

        /** The complete records that have come; none if the file is not there yet. */
        List<LabEvent> poll() throws IOException {
            List<LabEvent> events = new ArrayList<>();
            if (!Files.exists(path)) {
                return events;
            }
            ByteBuffer bytes;
            try (SeekableByteChannel file = Files.newByteChannel(path)) {
                file.position(position);
                bytes = ByteBuffer.allocate(Math.toIntExact(file.size() - position));
                while (bytes.hasRemaining() && file.read(bytes) >= 0) {}
            }
            bytes.flip();
            while (bytes.remaining() >= Integer.BYTES
                    && bytes.remaining() - Integer.BYTES >= bytes.getInt(bytes.position())) {
                byte[] record = new byte[bytes.getInt()];
                bytes.get(record);
                position += Integer.BYTES + record.length;
                events.add(LabEvent.readFrom(new DataInputStream(new ByteArrayInputStream(record))));
            }
            return events;
        }
    }
}
