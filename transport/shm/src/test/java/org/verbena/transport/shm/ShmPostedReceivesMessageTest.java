package org.verbena.transport.shm;

import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.protocol.connection.PostedReceives;
import org.verbena.transport.spi.EndpointHandler;

/** The same with messages that all come in receives. */
class ShmPostedReceivesMessageTest extends ShmMessageTest {
    @Override
    protected EndpointHandler handler(MessageConnection connection) {
        return new PostedReceives(connection);
    }
}
