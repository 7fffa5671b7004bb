package org.verbena.transport.soft;

import org.verbena.transport.protocol.connection.MessageConnection;
import org.verbena.transport.protocol.connection.PostedReceives;
import org.verbena.transport.spi.EndpointHandler;

/** The same with messages that all come in receives. */
class SoftPostedReceivesMessageTest extends SoftMessageTest {
    @Override
    protected EndpointHandler handler(MessageConnection connection) {
        return new PostedReceives(connection);
    }
}
